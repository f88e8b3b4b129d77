// The theme decides which boxes the keyboard can reach, for scrolling, when the page loads or its window changes. A
// folded output has no size then; tell the theme when one is opened.
document.addEventListener("toggle", () => window.dispatchEvent(new Event("resize")), true);

// The theme folds the pages below a page in the contents behind an arrow without words.
for (const arrow of document.querySelectorAll("nav.bd-links li.has-children > details > summary")) {
  const above = arrow.closest("li").querySelector(":scope > a");
  arrow.setAttribute("aria-label", `Pages below ${above.textContent.trim()}`);
}
