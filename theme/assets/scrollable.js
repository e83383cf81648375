/* A formula wider than the page scrolls in its own box. Where it does, the keyboard must reach it;
   the theme does the same for code and tables. */
function reachWideFormulas() {
  for (const box of document.querySelectorAll(".katex-display")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

window.addEventListener("load", reachWideFormulas);
window.addEventListener("resize", reachWideFormulas);
// a worked answer has no width until it is opened
document.addEventListener("toggle", reachWideFormulas, true);
