// The first tab's hands: pointers, keys, sliders and buttons. Each changes `line` and poses the problem anew.

const clamped = x => Math.round(100 * Math.min(TO, Math.max(FROM, x))) / 100;

function select(i, focus = false) {
  line.selected = Math.max(0, Math.min(line.points.length - 1, i));
  refresh();
  if (focus) requestAnimationFrame(() => plots.main.front.children[line.selected]?.focus());
}

/** A preset's story may not be true of what a reader changed. As long as theirs, so that the picture stays where it is. */
const OWN = "These are dots and settings of your own. At t = 1 (dashed) the prediction follows every dot; below, a dot it finds unlikely loses weight.";

function leavePreset() {
  press("presets", null);
  $("story").textContent = OWN;
}

function move(i, x) {
  leavePreset();
  line.points[i].x = clamped(x);
  pose();
}

/** This place; where a dot lies there already, the first free one by whole steps to the right, or to the left where the right is full. */
function freePlace(x) {
  const steps = [...Array(TO - FROM + 1).keys()];
  return [...steps.map(k => x + k), ...steps.map(k => x - k)].map(clamped).find(place => line.points.every(one => one.x !== place));
}

function add(x) {
  if (line.points.length >= MOST_POINTS) { $("live").textContent = countLimit(); return; }
  leavePreset();
  const place = freePlace(clamped(x));
  line.points.push({ x: place });
  pose();
  select(line.points.length - 1, true);
  $("live").textContent = `Point added at ${shown(place, 1)}.`;
}

function remove(i) {
  if (line.points.length < 2) { $("live").textContent = countLimit(); return; }
  leavePreset();
  line.points.splice(i, 1);
  pose();
  select(Math.min(i, line.points.length - 1), true);
  $("live").textContent = "Point removed.";
}

function takePreset(name) {
  const { points, name: _, story, ...rest } = PRESETS[name];
  $("story").innerHTML = story;
  Object.assign(line, rest, { points: points.map(x => ({ x })), selected: 0 });
  press("presets", name);
  showSettings();
  pose();
}

/** Sliders hold places; these turn them into values and back. */
const SLIDERS = {
  m: { get: v => v > 50 ? Infinity : v, put: v => v === Infinity ? 51 : v, tell: v => v === Infinity ? "∞" : v },
  t: { get: v => v / 100, put: v => Math.round(100 * v), tell: v => v },
  beta: { get: v => +Math.pow(10, v / 20).toPrecision(3), put: v => 20 * Math.log10(v), tell: v => line.m === Infinity ? "∞ (as m is)" : v },
  tP: { get: v => v / 100, put: v => Math.round(100 * v), tell: v => v },
  mean: { get: v => v / 2, put: v => 2 * v, tell: v => shown(v, 1) },
};

function showSettings() {
  for (const [name, slider] of Object.entries(SLIDERS)) {
    const input = $(`set-${name}`), told = String(slider.tell(line[name]));
    input.value = slider.put(line[name]);
    input.setAttribute("aria-valuetext", told.replace("∞", "infinity"));
    $(`out-${name}`).textContent = told;
  }
  $("tied").checked = line.tied;
  $("set-beta").disabled = line.tied || line.m === Infinity;
}

function bindSliders() {
  for (const [name, slider] of Object.entries(SLIDERS)) $(`set-${name}`).addEventListener("input", event => {
    line[name] = slider.get(Number(event.target.value));
    settingChanged();
  });
  $("tied").addEventListener("change", event => { line.tied = event.target.checked; settingChanged(); });
}

function settingChanged() {
  leavePreset();
  if (line.tied && line.m !== Infinity) line.beta = line.m;
  showSettings();
  pose();
}

/** Circles of reach overlap, and dots share their height: the nearest is the nearest along the axis, of equals the chosen one. */
function nearestDot(x) {
  const off = line.points.map(one => Math.abs(one.x - x)), least = Math.min(...off);
  return off[line.selected] === least ? line.selected : off.indexOf(least);
}

/** A point is dragged wherever it is taken; a tap on an empty place adds one. */
function bindPointers() {
  const svg = plots.main.svg;
  let held = null, tapped = null;
  const release = () => {
    held = tapped = null;
    if (line.moving) { line.moving = false; pose(); }
  };
  svg.addEventListener("pointerdown", event => {
    if (!event.target.closest(".point")) { tapped = [event.clientX, event.clientY]; return; }
    const i = nearestDot(plots.main.at(event));
    held = { i, id: event.pointerId, off: line.points[i].x - plots.main.at(event) };
    line.moving = true;
    select(i, true);
    event.preventDefault();
  });
  addEventListener("pointermove", event => {
    if (held && event.pointerId === held.id) move(held.i, plots.main.at(event) + held.off);
  });
  addEventListener("pointerup", event => {
    if (!held && tapped && Math.hypot(event.clientX - tapped[0], event.clientY - tapped[1]) < 6) add(plots.main.at(event));
    release();
  });
  addEventListener("pointercancel", release);
}

function bindKeys() {
  plots.main.front.addEventListener("focusin", event => select([...plots.main.front.children].indexOf(event.target.closest(".point"))));
  plots.main.front.addEventListener("keydown", event => {
    const i = line.selected, x = line.points[i].x, step = event.shiftKey ? 1 : 0.1;
    const actions = {
      ArrowLeft: () => move(i, x - step), ArrowDown: () => move(i, x - step),
      ArrowRight: () => move(i, x + step), ArrowUp: () => move(i, x + step),
      PageDown: () => move(i, x - 1), PageUp: () => move(i, x + 1), Home: () => move(i, FROM), End: () => move(i, TO),
      Delete: () => remove(i), Backspace: () => remove(i), "+": () => add(x + 1), Insert: () => add(x + 1),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    actions[event.key]();
    event.preventDefault();
  });
}

function bindButtons() {
  for (const [value, preset] of Object.entries(PRESETS)) {
    const button = Object.assign(document.createElement("button"), { type: "button", value, textContent: preset.name });
    button.addEventListener("click", () => takePreset(value));
    $("presets").append(button);
  }
  $("add").addEventListener("click", () => add(line.points[line.selected].x + 1));
  $("remove").addEventListener("click", () => remove(line.selected));
  $("copy").addEventListener("click", copyPython);
}

async function copyPython() {
  $("python").textContent = asPython();
  try { await navigator.clipboard.writeText(asPython()); } catch {
    getSelection().selectAllChildren($("python")); // a page in a file may have no clipboard
    document.execCommand("copy");
  }
  $("live").textContent = "Copied.";
  $("copy").textContent = "Copied";
  setTimeout(() => { $("copy").textContent = "Copy as Python"; }, 1500);
}

function startLine() {
  bindSliders(); bindPointers(); bindKeys(); bindButtons();
  new ResizeObserver(() => { if (plots.main.svg.parentElement.clientWidth) { Object.values(plots).forEach(plot => plot.layout()); refresh(); } })
    .observe(plots.main.svg.parentElement);
  Object.values(plots).forEach(plot => plot.layout());
  takePreset("outlier");
}
