// Put at the end of the page by test_page.py, in a frame as narrow as a phone.
document.getElementById("tab-plane").click();
const seen = { bad, wide: [document.documentElement.scrollWidth] };
document.getElementById("tab-line").click();
frame();
seen.wide.push(document.documentElement.scrollWidth, innerWidth);
seen.ground = getComputedStyle(document.body).backgroundColor;
seen.buttons = [...document.querySelectorAll("button")].filter(one => one.offsetHeight).map(one => one.offsetHeight);
seen.text = [...document.querySelectorAll("svg text")].map(one => parseFloat(getComputedStyle(one).fontSize) * one.getCTM().a);
const held = document.querySelector(".held");
seen.hidden = [...document.querySelectorAll("#line .controls :is(button, input:enabled, pre)")].filter(one => {
  scrollTo(0, one.getBoundingClientRect().top + scrollY - 100); // behind the picture
  one.focus();
  return one.getBoundingClientRect().top < held.getBoundingClientRect().bottom;
}).map(one => one.id);
document.activeElement.blur(); scrollTo(0, 0);
seen.touched = [...document.querySelectorAll(".point")].map(one => {
  const disc = one.children[2].getBoundingClientRect(), clientX = disc.x + disc.width / 2, clientY = disc.y + disc.height / 2;
  for (const type of ["pointerdown", "pointerup"])
    document.elementFromPoint(clientX, clientY).dispatchEvent(new PointerEvent(type, { clientX, clientY, bubbles: true, pointerId: 1, pointerType: "touch" }));
  return line.selected;
});
seen.home = document.getElementById("home").checkVisibility();
parent.postMessage(JSON.stringify(seen), "*");
