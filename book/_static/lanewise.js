// The theme decides which boxes the keyboard can reach, for scrolling, when the page loads or its window changes. A
// folded output has no size then; tell the theme when one is opened.
document.addEventListener("toggle", () => window.dispatchEvent(new Event("resize")), true);
