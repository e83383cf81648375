/* The little that the theme's scripts do not do. Pages are whole without it. */

/* A formula or figure wider than the page scrolls in its own box. Where it does, the
   keyboard must reach it; the theme does the same for code and tables. */
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

/* Paper is light, and shows what is closed on the screen. Afterwards all is as it was.
   */
let restore = [];

window.addEventListener("beforeprint", () => {
  const root = document.documentElement;
  const theme = root.dataset.theme;
  root.dataset.theme = "light";
  restore = [() => (root.dataset.theme = theme)];
  for (const closed of document.querySelectorAll("details:not([open])")) {
    closed.open = true;
    restore.push(() => (closed.open = false));
  }
});

window.addEventListener("afterprint", () => {
  restore.forEach((undo) => undo());
  restore = [];
});
