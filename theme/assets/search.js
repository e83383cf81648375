/* Opened from a folder, a page may not read other pages, and the extracts below the
   results cannot be had. The results themselves need no server. */
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

/* An extract is from a page's text, not from what stands around it, and shows a formula
   once: the page has it twice, for the eye and for the ear. */
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const text = page.querySelector("article");
  text.querySelectorAll(".katex-mathml, .headerlink").forEach((part) => part.remove());
  return ((anchor && text.querySelector(anchor)) || text).textContent;
};
