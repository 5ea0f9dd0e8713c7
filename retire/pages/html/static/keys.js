// Keys step where links lead: a link names its key in data-key, and shows it beside its words.
"use strict";

const typing = "input, select, textarea, [contenteditable]";

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) {
    return;
  }
  if (event.target instanceof Element && event.target.closest(typing)) {
    return;
  }
  if (!/^[a-z]$/.test(event.key)) {
    return;
  }
  const link = document.querySelector(`a[data-key="${event.key}"]`);
  if (link) {
    event.preventDefault();
    link.click();
  }
});
