// Put at the end of the page by test_page.py: uses it, and writes what was seen. CASES comes before.
const seen = { bad };
const text = id => document.getElementById(id).textContent;
const settle = () => { line.solving.run(); line.plain.run(); frame(); };
const solve = c => new Descent(c.points.map(rowAt), logPriorAt(c.mean), { ...c, beta: c.beta ?? Infinity, m: c.m ?? Infinity }, null, 1e-8);
seen.cases = CASES.map(c => {
  const found = solve(c).run(Infinity, 300), p = predictive(found.q), phi = gaussianMinimum(c.points, c.t);
  return { q: [...found.q], value: found.value, tv: totalVariation(p), phi, pull: contaminationTerm(-8, phi, c.t) };
});
const limit = solve({ points: CASES[0].points, m: null, t: 0.5, beta: null, tP: 1, mean: 0 }).run(Infinity, 400);
seen.limit = { q: [...limit.q], value: limit.value };

// By hand: the first dot by keys and by a drag; one more by a tap, removed by a key.
settle();
const marks = () => [...document.querySelectorAll(".point")];
const key = (name, more = {}) => marks()[line.selected].dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, ...more }));
const set = (id, value) => { const one = document.getElementById(id); one.value = value; one.dispatchEvent(new Event("input")); };
const pointer = (type, where, x, y) => where.dispatchEvent(new PointerEvent(type, { clientX: x, clientY: y, bubbles: true, pointerId: 1, pointerType: "touch" }));
marks()[0].focus();
key("ArrowRight"); key("ArrowRight", { shiftKey: true }); settle();
const lead = () => document.querySelector(".lead").offsetHeight;
const own = () => ({ pressed: document.querySelectorAll("#presets [aria-pressed=true]").length, story: text("story"), tall: lead() });
seen.own = [own()];
seen.keys = { x: line.points[0].x, now: marks()[0].getAttribute("aria-valuenow"), focus: document.activeElement === marks()[0] };
const box = marks()[0].getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
pointer("pointerdown", marks()[0].firstChild, x, y);
const before = [...line.solving.q], wide = plots.main.px(2) - plots.main.px(0);
pointer("pointermove", document.body, x + wide, y); settle();
seen.moving = line.moving;
pointer("pointerup", document.body, x + wide, y); settle();
seen.drag = { x: line.points[0].x, changed: before.some((v, g) => v !== line.solving.q[g]), settled: line.solving.residual };
const svg = document.getElementById("main-plot"), frameBox = svg.getBoundingClientRect();
const place = [frameBox.left + plots.main.px(5) / plots.main.width * frameBox.width, frameBox.top + 30];
pointer("pointerdown", svg, ...place); pointer("pointerup", svg, ...place); settle();
seen.tapped = line.points.map(one => one.x);
key("Delete"); settle();
seen.removed = line.points.map(one => one.x);
for (let i = 0; i < 9; i++) key("Backspace");
seen.left = line.points.length; settle(); seen.alone = text("words");
for (const change of [() => add(3), () => remove(0), () => set("set-t", 30)]) { takePreset("clean"); change(); seen.own.push(own()); }

// Settings, the copied call, presets.
takePreset("outlier"); set("set-t", 100); settle(); seen.tied = text("words");
takePreset("outlier");
set("set-m", 7); set("set-t", 65); set("set-mean", 3); set("set-tP", 70); settle();
seen.python = asPython(); seen.shown = text("python"); seen.q = [...line.solving.q];
seen.words = text("words"); seen.told = text("tv");
seen.radii = marks().map(one => Number(one.children[2].getAttribute("r")));
seen.weights = line.found.weights;
seen.presets = Object.keys(PRESETS).map(name => { takePreset(name); settle(); return [line.solving.done, text("words").length]; });
set("set-m", 51); frame();
seen.endless = { beta: document.getElementById("set-beta").disabled, python: asPython() };

set("set-t", 100); settle(); seen.endless.told = text("words");

// Which dot a finger takes, and dots that lie on each other, at the ends, or are as many as there may be.
const touch = i => {
  const disc = marks()[i].children[2].getBoundingClientRect(), place = [disc.x + disc.width / 2, disc.y + disc.height / 2];
  pointer("pointerdown", document.elementFromPoint(...place), ...place); pointer("pointerup", document.body, ...place);
  return line.selected;
};
takePreset("clusters"); settle(); seen.touched = line.points.map((_, i) => touch(i));
line.points[3].x = line.points[4].x; pose(); settle(); line.selected = 3; seen.tie = [touch(3)]; line.selected = 4; seen.tie.push(touch(3));
const limits = () => ({ add: document.getElementById("add").disabled, remove: document.getElementById("remove").disabled,
  title: document.getElementById("add").title + document.getElementById("remove").title, note: plots.main.note.textContent });
takePreset("clean"); settle(); seen.limits = [limits()];
key("End"); settle();
const ring = marks()[0].children[1], reach = Number(ring.getAttribute("r")) + 3.5 / 2; // with the focus's stroke
seen.ring = [plots.main.px(FROM) - reach, plots.main.width - plots.main.px(TO) - reach];
document.getElementById("add").click(); add(1.7);
seen.full = line.points.map(one => one.x).slice(4);
while (line.points.length < MOST_POINTS) { line.selected = 0; document.getElementById("add").click(); }
frame(); seen.limits.push(limits()); seen.places = line.points.map(one => one.x);
while (line.points.length > 1) remove(0);
frame(); seen.limits.push(limits());

// Twenty dots at m = 50, dragged with 6 steps to a frame; a picture that takes long says so.
const gauss = randomNumbers(5).normal;
line.points = Array.from({ length: 20 }, () => ({ x: clamped(2 * gauss()) }));
Object.assign(line, { m: 50, t: 1, beta: 50, tied: true, moving: true }); pose(); settle();
seen.follows = 0;
for (let i = 0; i < 60; i++) {
  move(3, line.points[3].x + 0.05); line.solving.run(Infinity, 6); line.start = line.solving.logQ;
  seen.follows += line.solving.settled;
}
line.start = null; pose(); line.since = performance.now() - 1000; picture(); seen.slow = [plots.main.note.textContent];
line.moving = false; settle(); seen.slow.push(plots.main.note.textContent);

// J stalls in double precision before q meets the tolerance.
takePreset("prior"); line.start = null; line.tP = 0.3; pose(); settle(); seen.stalled = text("words");
const stalled = (residual, more = {}) => Object.assign(solve({ ...CASES[0], ...more }), { residual, damping: 1e-10 }).settled;
seen.stalls = [stalled(1e-6), stalled(1e-4), stalled(1e-6, { m: null, beta: null })];

// What is copied, for each preset; words as they are seen.
seen.copied = Object.keys(PRESETS).map(name => { takePreset(name); settle(); return [asPython(), text("tv"), lead()]; });
takePreset("prior"); settle();
seen.text = document.body.innerText.replace(document.getElementById("python").innerText, "");
seen.leads = [...document.querySelectorAll(".lead")].map(one => one.textContent);
seen.home = document.getElementById("home").checkVisibility();

// The plane.
document.getElementById("tab-plane").click();
const robust = new Logistic(ROWS.map(row => row.features), plane.labels, 0.4, plane.plain.run().theta).run();
const told = fit => ({ theta: [...fit.theta], value: fit.value });
seen.plane = { rows: ROWS.map(row => [...row.features]), true: ROWS.map(row => row.y), labels: [...plane.labels],
  plain: told(plane.plain), robust: told(robust), scores: [scores(plane.plain), scores(robust)], hidden: document.getElementById("line").hidden };
const wrong = wrongRows();
document.getElementById("plane-plain").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
seen.unpressed = document.querySelectorAll("#wrong [aria-pressed=true]").length;
seen.flipped = Math.abs(wrongRows() - wrong);
takeWrong("none");
const flipped = () => { document.getElementById("plane-plain").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" })); return text("live"); };
seen.flips = [flipped(), flipped()];
flip(0); plane.plain.run(); planeFrame(); while (!plane.robust.done) planeFrame();
seen.scores = [document.getElementById("plane-words").getAttribute("aria-live"), text("plane-words")];
seen.text += document.body.innerText;
takeWrong("none"); seen.clean = wrongRows();

const out = document.createElement("pre"); out.id = "seen";
out.textContent = JSON.stringify(seen); document.body.append(out);
