/* A page with a new address: go there, and to the same place on it. Without JavaScript the page
   leads there too, to its top. */
const target = new URL(document.querySelector("link[rel=canonical]").href);
target.search = location.search;
target.hash = location.hash;
location.replace(target);
