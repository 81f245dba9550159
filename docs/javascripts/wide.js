// A formula or table that is wider than its place is reached by the tab key and scrolled by arrows.
const tell = (place) => {
  const name = place.classList.contains("formula") ? "Formula" : "Table";
  const wide = place.scrollWidth > place.clientWidth;
  const said = { tabindex: "0", role: "region", "aria-label": `${name}, scrolls sideways` };
  for (const [key, value] of Object.entries(said)) {
    wide ? place.setAttribute(key, value) : place.removeAttribute(key);
  }
};
const sizes = new ResizeObserver((seen) => seen.forEach(({ target }) => tell(target.closest(".wide"))));
for (const place of document.querySelectorAll(".wide")) {
  tell(place);
  sizes.observe(place);
  sizes.observe(place.firstElementChild);
}
