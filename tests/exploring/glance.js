// Put at the end of the page by test_page.py, in a frame as narrow as a phone.
document.getElementById("tab-plane").click();
const seen = { bad, wide: [document.documentElement.scrollWidth] };
document.getElementById("tab-line").click();
frame();
seen.wide.push(document.documentElement.scrollWidth, innerWidth);
seen.ground = getComputedStyle(document.body).backgroundColor;
seen.buttons = [...document.querySelectorAll("button")].filter(one => one.offsetHeight).map(one => one.offsetHeight);
seen.text = [...document.querySelectorAll("svg text")].map(one => parseFloat(getComputedStyle(one).fontSize) * one.getCTM().a);
parent.postMessage(JSON.stringify(seen), "*");
