// A wide table scrolls in its own frame; the keyboard must be able to reach it. The theme makes the frames after the page has loaded.
function reachable() {
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((frame) => frame.setAttribute("tabindex", "0"));
}
new MutationObserver(reachable).observe(document.body, { childList: true, subtree: true });
reachable();
