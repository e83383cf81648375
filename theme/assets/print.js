/* Paper is light, and shows what is closed on the screen. Afterwards all is as it was. */
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
