// The first tab: points on a line that are dragged, added and removed, and what the ensemble makes of them.

const PRESETS = {
  outlier: { name: "Five points, one an outlier", story: "The dot far to the left is wrong. Drag it: at t = 1 (dashed) the prediction follows it; below, it loses its weight, as its size shows.",
    points: [-8.21, -2.16, -0.94, 1.70, 2.38], m: 10, t: 0.5, beta: 10, tied: true, tP: 1, mean: 0 },
  clean: { name: "No outlier", story: "All dots are right. Then t hardly matters, until a small one leaves the dots little weight against the prior.",
    points: [-2.16, -0.94, 1.70, 2.38], m: 10, t: 1, beta: 10, tied: true, tP: 1, mean: 0 },
  prior: { name: "A wrong prior", story: "The prior sits at \u221210, the dots around 0, and the members follow the prior. Lower t<sub>p</sub>: being far from it costs less, and they come.",
    points: [-2.16, -0.94, 1.70, 2.38], m: 10, t: 1, beta: 1, tied: false, tP: 1, mean: -10 },
  clusters: { name: "Two clusters", story: "One Gaussian is too simple for two clusters. Set m = 1, which is Bayes: it lies between them. Together, members share the clusters out.",
    points: [-3.1, -2.4, -1.7, 1.2, 1.8, 2.3, 2.9, 3.6], m: 10, t: 1, beta: 10, tied: true, tP: 1, mean: 0 },
};
const FROM = -12, TO = 12, MOST_POINTS = 20, CURVE = 5;
const EXACT = 1e-7, IN_MOTION = 1e-5; // total variation of q and T(q); a pixel is about 3e-3
const SLOW = 300; // milliseconds after which a picture that has not settled says so

const line = { points: [], selected: 0, told: 0, since: 0, start: null, startPlain: null, ...PRESETS.outlier };
const plots = { main: new Plot("main-plot", [330, 230], FROM, TO), q: new Plot("q-plot", [130, 90], FROM, TO), pull: new Plot("pull-plot", [170, 150], FROM, TO) };
plots.main.foot = 66; // room for the points below the axis
plots.pull.top = 1.2;
plots.main.note = draw("text", { x: plots.main.left, y: 16, "aria-hidden": true }, plots.main.svg);

const criterion = () => ({ m: line.m, t: line.t, beta: line.m === Infinity ? Infinity : line.beta, tP: line.tP });

/** Problems that follow from the state, begun where the last ones ended. */
function pose() {
  if (line.tied && line.m !== Infinity) line.beta = line.m;
  for (const point of line.points) if (point.row?.at !== point.x) { point.row = rowAt(point.x); point.row.at = point.x; }
  const rows = line.points.map(point => point.row), prior = logPriorAt(line.mean), here = criterion();
  const past = solve => line.moving ? solve.past : undefined; // what steps taught holds while a dot moves a little
  line.solving = new Descent(rows, prior, here, line.start, line.moving ? IN_MOTION : EXACT, past(line.solving));
  line.plain = here.t === 1 ? line.solving : new Descent(rows, prior, { ...here, t: 1 }, line.startPlain, IN_MOTION, past(line.plain));
  line.logPrior = prior;
  line.since ||= performance.now();
  refresh();
}

/** A frame's share of the work, then a picture. True if more is to be done. */
function frame() {
  const { solving, plain } = line;
  solving.run(12);
  if (plain !== solving) plain.run(solving.done ? 8 : 4);
  line.start = solving.logQ; line.startPlain = plain.logQ;
  const more = !(solving.done && plain.done);
  if (!more) line.since = 0;
  picture();
  if (!more || solving.steps > 100 && performance.now() - line.told > 700) describe();
  return more;
}
const refresh = inFrames(frame);

function picture() {
  const q = line.solving.q, p = predictive(q), plain = line.plain === line.solving ? p : predictive(line.plain.q);
  line.found = { q, p, tv: totalVariation(p), tvPlain: totalVariation(plain) };
  const { main, q: below, pull } = plots;
  const most = Math.max(...p, ...plain, 0.2);
  main.top = [0.22, 0.3, 0.45, 0.7, 1].find(v => v >= most) ?? most;
  main.curve("nu", X, NU, { every: CURVE, fill: true });
  main.curve("plain", X, plain, { every: CURVE });
  main.curve("predictive", X, p, { every: CURVE });
  const density = q.map(v => v / SPACING), prior = line.logPrior.map(v => Math.exp(v) / SPACING);
  below.top = Math.max(0.3, 1.05 * Math.max(...density));
  below.curve("prior", THETA, prior);
  below.curve("q", THETA, density, { fill: true });
  const phi = gaussianMinimum(line.points.map(one => one.x), line.t), plainPhi = gaussianMinimum(line.points.map(one => one.x), 1);
  const zs = Array.from({ length: 241 }, (_, i) => FROM + i * (TO - FROM) / 240);
  pull.curve("plain", zs, zs.map(z => Math.abs(contaminationTerm(z, plainPhi, 1))));
  pull.curve("predictive", zs, zs.map(z => Math.abs(contaminationTerm(z, phi, line.t))));
  Object.assign(line.found, { phi, plainPhi });
  drawPoints();
  say();
}

/** Points with areas that tell their weights p^(1-t); the same elements stay, so that focus does. */
function drawPoints() {
  const { main, pull } = plots, group = main.front, y = main.height - main.foot + 41;
  const weights = line.points.map(one => Math.pow(predictiveAt(line.found.q, one.x), 1 - line.t));
  line.found.weights = weights;
  const most = Math.max(...weights, 1e-300);
  while (group.children.length > line.points.length) group.lastChild.remove();
  line.points.forEach((one, i) => {
    const mark = group.children[i] || newMark(i), chosen = i === line.selected;
    mark.setAttribute("transform", `translate(${main.px(one.x).toFixed(1)} ${y})`);
    mark.classList.toggle("chosen", chosen);
    mark.children[2].setAttribute("r", (3 + 7.5 * Math.sqrt(weights[i] / most)).toFixed(2));
    mark.setAttribute("aria-valuenow", one.x.toFixed(2));
    mark.setAttribute("aria-valuetext", `${shown(one.x)}, weight ${Math.round(100 * weights[i] / most)} % of the heaviest`);
  });
  const z = line.points[line.selected].x, size = Math.abs(contaminationTerm(z, line.found.phi, line.t));
  pull.dot ||= draw("circle", { r: 6, class: "dot" }, pull.front);
  pull.dot.setAttribute("cx", pull.px(z)); pull.dot.setAttribute("cy", Math.max(6, pull.py(size)));
  line.found.pull = size;
  line.found.pullPlain = Math.abs(contaminationTerm(z, line.found.plainPhi, 1));
}

function newMark(i) {
  const mark = draw("g", { class: "point", tabindex: 0, role: "slider", "aria-label": `Point ${i + 1}`,
    "aria-valuemin": FROM, "aria-valuemax": TO }, plots.main.front);
  draw("circle", { r: 22, class: "hit" }, mark);
  draw("circle", { r: 13.5, class: "ring" }, mark);
  draw("circle", { r: 5, class: "disc" }, mark);
  return mark;
}

function say() {
  const { tv, tvPlain, weights, pull, pullPlain } = line.found, i = line.selected;
  const share = weights[i] / Math.max(...weights);
  $("tv").textContent = shown(tv, 3);
  $("tv-plain").textContent = shown(tvPlain, 3);
  $("point-weight").textContent = `${shown(weights[i], 3)} (${Math.round(100 * share)} % of the heaviest)`;
  $("point-pull").textContent = `${shown(pull)} (${shown(pullPlain)} at t = 1)`;
  $("point-at").textContent = shown(line.points[i].x);
  const { residual, steps } = line.solving;
  $("state").textContent = `After ${steps} step${steps === 1 ? "" : "s"} a next one would move ${residual.toExponential(0)} of the mass of q. ${settling()}`;
  plots.main.note.textContent = `${countLimit()} ${line.since && performance.now() - line.since > SLOW ? "Still settling \u2026" : ""}`.trim();
  for (const [id, end] of [["add", MOST_POINTS], ["remove", 1]]) {
    $(id).disabled = line.points.length === end;
    $(id).title = $(id).disabled ? countLimit() : "";
  }
}

/** Why no dot can be added or removed; empty where both can be done. */
const countLimit = () => ({ 1: "One dot must stay.", [MOST_POINTS]: `At most ${MOST_POINTS} dots.` })[line.points.length] || "";

/** What is not to be trusted yet, or at all; empty once q and its rival at t = 1 have settled. */
function settling() {
  const open = (solve, what) => solve.settled ? "" : `${what} ${solve.done ? "did not settle" : "is still settling"}: a next step would move ${solve.residual.toExponential(0)} of its mass. `;
  return open(line.solving, "q") + (line.plain === line.solving ? "" : open(line.plain, "q at t = 1"));
}

/** In words, once the picture rests: for those who do not see it. */
function describe() {
  line.told = performance.now();
  const { q, tv, tvPlain, weights } = line.found, mean = dot(q, THETA), count = line.points.length;
  const off = line.points.map(one => Math.abs(one.x - mean));
  const [worst] = weights.map((_, i) => i).sort((a, b) => weights[a] - weights[b] || off[b] - off[a]); // at t = 1 all weights tie
  const far = line.points[worst].x, near = q.reduce((sum, v, g) => Math.abs(THETA[g] - far) < 2 ? sum + v : sum, 0);
  const where = line.points.map(one => shown(one.x, 1)).sort((a, b) => parseFloat(a.replace("\u2212", "-")) - parseFloat(b.replace("\u2212", "-"))).join(", ");
  const gain = tvPlain - tv;
  $("words").textContent = `${count} point${count === 1 ? "" : "s"}, at ${where}. With m = ${line.m === Infinity ? "infinity" : line.m} and t = ${line.t} `
    + `the prediction is ${shown(tv, 2)} away from ν in total variation${line.t === 1 ? "" : `, ${Math.abs(gain) < 0.005 ? "as it is" : gain > 0 ? "closer than" : "farther than"} at t = 1${Math.abs(gain) < 0.005 ? "" : ` (${shown(tvPlain, 2)})`}`}. `
    + `The members of the ensemble lie around ${shown(mean, 1)}, ${Math.round(100 * near)} % of them within 2 of the point at ${shown(far, 1)}`
    + (count === 1 ? "." : line.t === 1 ? ". At t = 1 all points weigh the same." : `, which weighs ${Math.round(100 * weights[worst] / Math.max(...weights))} % of the heaviest.`)
    + ` ${settling()}`;
  $("python").textContent = asPython();
}

const SLOWLY = "# m = inf settles slowly, in the page too: tv may be 0.01 off, q itself by far more.";

/** The settings as the call that reproduces q and prints how it ended and its distance from ν. */
function asPython() {
  const { m, t, beta, tP } = criterion(), number = v => v === Infinity ? "np.inf" : String(v);
  return ["import numpy as np", "from scipy.stats import norm", "from mtbayes import Criterion, fixed_point", "from mtbayes.metrics.distance import total_variation", "",
    `points = np.array([${line.points.map(one => +one.x.toFixed(4)).join(", ")}])`,
    `theta = np.linspace(-${HALF}, ${HALF}, ${GRID})`,
    `prior = norm.pdf(theta, ${line.mean}, ${PRIOR_STD})`,
    "log_lik = norm.logpdf(points, theta[:, None])  # [models, rows]",
    `criterion = Criterion(m=${number(m)}, t=${t}, beta=${number(beta)}, t_p=${tP})`,
    "solution = fixed_point(log_lik, prior / prior.sum(), criterion)", "print(solution.status)", "q = solution.state",
    "predictive = q @ norm.pdf(points, theta[:, None])  # p_q at the points", "",
    `x = np.linspace(${X[0]}, ${-X[0]}, ${X_SIZE})`,
    "nu = 0.7 * norm.pdf(x, 2, np.sqrt(2)) + 0.3 * norm.pdf(x, -2, np.sqrt(2))",
    "tv = total_variation(q @ norm.pdf(x, theta[:, None]), nu, x[1] - x[0]).value",
    ...(m === Infinity ? [SLOWLY] : []),
    'print(f"TV from nu: {tv:.3f}")', ""].join("\n");
}
