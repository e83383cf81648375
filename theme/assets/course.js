/* The little that the theme's scripts do not do. Pages are whole without it. */

/* A formula or figure wider than the page scrolls in its own box. Where it does, the keyboard must
   reach it; the theme does the same for code and tables. */
function reachWideBoxes() {
  for (const box of document.querySelectorAll(".katex-display, .cell_output:has(> img)")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

window.addEventListener("load", reachWideBoxes);
window.addEventListener("resize", reachWideBoxes);
// a worked answer has no width until it is opened
document.addEventListener("toggle", reachWideBoxes, true);

/* What the theme has as inline code in its buttons, which content_security.py takes out. */
const ACTIONS = {
  ".btn-download-pdf-button": () => window.print(),
  ".btn-fullscreen-button": () => toggleFullScreen(),
};
for (const [button, action] of Object.entries(ACTIONS)) {
  document.querySelector(button)?.addEventListener("click", action);
}
