// The second tab's hands, the tabs themselves, and the start of the page.

function flip(i) {
  press("wrong", null);
  plane.labels[i] = 1 - plane.labels[i];
  poseplane();
}

/** The row nearest to a place, if it is within reach. */
function nearest([x, y], reach) {
  let best = -1, least = reach;
  ROWS.forEach((row, i) => { const d = Math.hypot(row.x[0] - x, row.x[1] - y); if (d < least) { least = d; best = i; } });
  return best;
}

const WRONG = {
  none: () => ROWS.map(row => row.y),
  random: () => {
    const lots = ROWS.map(randomNumbers(3).uniform), first = lots.slice().sort((a, b) => a - b)[0.3 * ROWS.length];
    return ROWS.map((row, i) => lots[i] < first ? 1 - row.y : row.y);
  },
  patch: () => ROWS.map(row => Math.hypot(row.x[0] + 0.75, row.x[1] - 0.55) < 0.42 ? 1 : row.y),
};

function takeWrong(name) {
  plane.labels = WRONG[name]();
  press("wrong", name);
  poseplane();
}

function bindPlane(canvas) {
  const at = event => {
    const box = canvas.getBoundingClientRect();
    return [BOX.left + (event.clientX - box.left) / box.width * (BOX.right - BOX.left),
      BOX.high - (event.clientY - box.top) / box.height * (BOX.high - BOX.low)];
  };
  canvas.addEventListener("click", event => {
    const i = nearest(at(event), 0.2);
    if (i >= 0) flip(i);
  });
  canvas.addEventListener("keydown", event => {
    const step = event.shiftKey ? 0.4 : 0.1, [x, y] = plane.cursor;
    const to = { ArrowLeft: [x - step, y], ArrowRight: [x + step, y], ArrowUp: [x, y + step], ArrowDown: [x, y - step] }[event.key];
    if (to) plane.cursor = [Math.min(BOX.right, Math.max(BOX.left, to[0])), Math.min(BOX.high, Math.max(BOX.low, to[1]))];
    else if (event.key === "Enter" || event.key === " ") {
      const i = nearest(plane.cursor, Infinity);
      flip(i);
      $("live").textContent = `Label of the row at ${ROWS[i].x.map(v => shown(v, 1)).join(", ")} is now ${plane.labels[i] ? "square" : "circle"}: ${plane.labels[i] === ROWS[i].y ? "right again" : "wrong"}.`;
    } else return;
    plane.moved = true;
    event.preventDefault();
    plane.refresh();
  });
  for (const name of ["focus", "blur"]) canvas.addEventListener(name, plane.refresh);
}

function startPlane() {
  bindPlane($("plane-plain")); bindPlane($("plane-robust"));
  for (const button of $("wrong").children) button.addEventListener("click", () => takeWrong(button.value));
  $("set-plane-t").addEventListener("input", event => {
    plane.t = Number(event.target.value) / 100;
    for (const one of document.querySelectorAll(".plane-t")) one.textContent = plane.t;
    plane.robust = null;
    plane.refresh();
  });
  new ResizeObserver(plane.refresh).observe($("plane-plain"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", plane.refresh);
  takeWrong("random");
}

function startTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const choose = (tab, focus) => {
    for (const one of tabs) {
      const on = one === tab;
      one.setAttribute("aria-selected", String(on)); one.tabIndex = on ? 0 : -1;
      $(one.getAttribute("aria-controls")).hidden = !on;
    }
    if (focus) tab.focus();
    history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`);
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", event => {
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") choose(tabs[(i + 1) % tabs.length], true);
    });
  });
  const asked = tabs.find(tab => `#${tab.getAttribute("aria-controls")}` === location.hash);
  if (asked) choose(asked);
}

startLine();
startPlane();
startTabs();
$("home").hidden = !document.referrer.startsWith(new URL(".", location).href); // a copy that was sent alone has no site around it
document.body.dataset.ready = "yes";
