/* The little that the theme's scripts do not do. Pages are whole without it. */

/* A formula or figure wider than the page scrolls in its own box. Where it does, the
   keyboard must reach it; the theme does the same for code and tables. */
function reachWideBoxes() {
  for (const box of document.querySelectorAll(".katex-display, .cell_output:has(> img)")) {
    box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
  }
}

window.addEventListener("load", reachWideBoxes);
window.addEventListener("resize", reachWideBoxes);
// a worked answer has no width until it is opened
document.addEventListener("toggle", reachWideBoxes, true);

/* Paper is light. Afterwards all is as it was. */
const page = document.documentElement.dataset;
let theme;
window.addEventListener("beforeprint", () => { theme = page.theme; page.theme = "light"; });
window.addEventListener("afterprint", () => { page.theme = theme; });
