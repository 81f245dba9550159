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
const own = () => ({ pressed: document.querySelectorAll("#presets [aria-pressed=true]").length, story: text("story") });
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
takeWrong("none"); seen.clean = wrongRows();

const out = document.createElement("pre"); out.id = "seen";
out.textContent = JSON.stringify(seen); document.body.append(out);
