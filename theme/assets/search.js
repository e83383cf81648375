/* Opened from a folder, a page may not read other pages, and the extracts below the results cannot
   be had. The results themselves need no server. */
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
