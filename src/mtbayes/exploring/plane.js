// The second tab: two classes in the plane, labels made wrong by hand, t = 1 beside the t chosen.

const BOX = { left: -1.8, right: 2.8, low: -1.45, high: 1.95 }, CELLS = [46, 34], NEW_ROWS = 1000;

/** Two moons with some spread: [x, y] and the true class. */
function moons(count, seed) {
  const { uniform, normal: gauss } = randomNumbers(seed);
  return Array.from({ length: count }, (_, i) => {
    const y = i % 2, angle = Math.PI * uniform();
    const x = y ? [1 - Math.cos(angle), 0.45 - Math.sin(angle)] : [Math.cos(angle), Math.sin(angle)];
    return { x: [x[0] + 0.22 * gauss(), x[1] + 0.22 * gauss()], y };
  });
}

const ROWS = moons(300, 1), FRESH = moons(NEW_ROWS, 2);
for (const row of [...ROWS, ...FRESH]) row.features = features(row.x);
const GRID_FEATURES = Array.from({ length: CELLS[0] * CELLS[1] }, (_, i) => features(atCell(i)));
function atCell(i) {
  const [w, h] = CELLS;
  return [BOX.left + (i % w) / (w - 1) * (BOX.right - BOX.left), BOX.high - Math.floor(i / w) / (h - 1) * (BOX.high - BOX.low)];
}

const plane = { t: 0.4, labels: [], cursor: [0.5, 0.2], plain: null, robust: null, moved: false };
const wrongRows = () => plane.labels.filter((y, i) => y !== ROWS[i].y).length;

function poseplane() {
  plane.plain = new Logistic(ROWS.map(row => row.features), plane.labels, 1, plane.plain?.theta);
  plane.robust = null;
  plane.refresh();
}

/** A frame's share: t = 1 first, for the other begins where it ends. */
function planeFrame() {
  if (!plane.plain.done) plane.plain.run(14);
  else plane.robust ||= new Logistic(ROWS.map(row => row.features), plane.labels, plane.t, plane.plain.theta);
  if (plane.robust && !plane.robust.done) plane.robust.run(14);
  drawPlane("plain", plane.plain);
  if (plane.robust) drawPlane("robust", plane.robust);
  const more = !plane.robust?.done;
  if (!more) describePlane();
  return more;
}
plane.refresh = inFrames(planeFrame);

const colour = name => getComputedStyle(document.body).getPropertyValue(name).trim();
const mixed = (from, to, share) => from.map((v, i) => v + share * (to[i] - v));
const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));

function drawPlane(name, fit) {
  const canvas = $(`plane-${name}`), ratio = devicePixelRatio || 1, width = canvas.clientWidth;
  if (!width) return;
  const height = Math.round(width * (BOX.high - BOX.low) / (BOX.right - BOX.left));
  if (canvas.width !== Math.round(width * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
  const pen = canvas.getContext("2d"), p = GRID_FEATURES.map(row => sigmoid(dot(row, fit.theta)));
  pen.setTransform(canvas.width / (BOX.right - BOX.left), 0, 0, -canvas.width / (BOX.right - BOX.left),
    -BOX.left * canvas.width / (BOX.right - BOX.left), BOX.high * canvas.width / (BOX.right - BOX.left));
  region(pen, p);
  border(pen, p);
  const weights = fit.weights(), most = Math.max(...weights);
  ROWS.forEach((row, i) => mark(pen, row, plane.labels[i], weights[i] / most));
  if (document.activeElement === canvas && plane.moved) cross(pen, plane.cursor);
}

/** Cells in the colour of their class, as strong as the fit is sure. */
function region(pen, p) {
  const [w, h] = CELLS, image = new ImageData(w, h);
  const ends = [rgb(colour("--zero")), rgb(colour("--page")), rgb(colour("--one"))];
  p.forEach((v, i) => image.data.set([...mixed(ends[1], ends[v > 0.5 ? 2 : 0], 0.62 * Math.abs(2 * v - 1)), 255], 4 * i));
  const small = region.small ||= Object.assign(document.createElement("canvas"), { width: w, height: h });
  small.getContext("2d").putImageData(image, 0, 0);
  const half = [(BOX.right - BOX.left) / (w - 1) / 2, (BOX.high - BOX.low) / (h - 1) / 2];
  pen.save();
  pen.imageSmoothingEnabled = true;
  pen.imageSmoothingQuality = "high";
  pen.scale(1, -1);
  pen.drawImage(small, BOX.left - half[0], -BOX.high - half[1], BOX.right - BOX.left + 2 * half[0], BOX.high - BOX.low + 2 * half[1]);
  pen.restore();
}

/** The line p = 1/2, cell by cell. */
function border(pen, p) {
  const [w, h] = CELLS;
  pen.strokeStyle = colour("--ink"); pen.lineWidth = 0.018;
  pen.beginPath();
  for (let r = 0; r + 1 < h; r++) for (let c = 0; c + 1 < w; c++) {
    const corners = [r * w + c, r * w + c + 1, (r + 1) * w + c + 1, (r + 1) * w + c], cuts = [];
    corners.forEach((one, k) => {
      const next = corners[(k + 1) % 4], a = p[one] - 0.5, b = p[next] - 0.5;
      if (a * b < 0) cuts.push(mixed(atCell(one), atCell(next), a / (a - b)));
    });
    for (let k = 0; k + 1 < cuts.length; k += 2) { pen.moveTo(...cuts[k]); pen.lineTo(...cuts[k + 1]); }
  }
  pen.stroke();
}

/** Circles and squares for the labels given, areas for their weights; a wrong one has a ring. */
function mark(pen, row, label, share) {
  const [x, y] = row.x, r = 0.016 + 0.032 * Math.sqrt(share);
  pen.fillStyle = colour(label ? "--one" : "--zero"); pen.strokeStyle = colour("--page"); pen.lineWidth = 0.012;
  pen.beginPath();
  if (label) pen.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r); else pen.arc(x, y, r, 0, 7);
  pen.fill(); pen.stroke();
  if (label === row.y) return;
  pen.strokeStyle = colour("--ink"); pen.lineWidth = 0.015;
  pen.beginPath(); pen.arc(x, y, 0.07, 0, 7); pen.stroke();
}

function cross(pen, [x, y]) {
  pen.strokeStyle = colour("--ink"); pen.lineWidth = 0.02;
  pen.beginPath(); pen.arc(x, y, 0.1, 0, 7);
  pen.moveTo(x - 0.16, y); pen.lineTo(x + 0.16, y); pen.moveTo(x, y - 0.16); pen.lineTo(x, y + 0.16); pen.stroke();
}

/** How often a fit is right on new rows with true labels, how sure it is of itself, and its log loss. */
function scores(fit) {
  let right = 0, sure = 0, loss = 0;
  for (const row of FRESH) {
    const p = sigmoid(dot(row.features, fit.theta));
    right += (p > 0.5) === (row.y === 1); sure += Math.max(p, 1 - p); loss -= Math.log(Math.max(1e-12, row.y ? p : 1 - p));
  }
  return { right: right / NEW_ROWS, sure: sure / NEW_ROWS, loss: loss / NEW_ROWS };
}

function describePlane() {
  const percent = v => `${(100 * v).toFixed(1)} %`, told = { plain: scores(plane.plain), robust: scores(plane.robust) };
  for (const [name, { right, sure, loss }] of Object.entries(told))
    $(`scores-${name}`).textContent = `Right on ${NEW_ROWS} new rows: ${percent(right)}. On average it says ${percent(sure)}. Log loss ${loss.toFixed(3)}.`;
  plane.told = told;
  const words = `${wrongRows()} of ${ROWS.length} labels are wrong. The fit at t = 1 is right on ${percent(told.plain.right)} of new rows whose labels are right, `
    + `the fit at t = ${plane.t} on ${percent(told.robust.right)}; their log losses are ${told.plain.loss.toFixed(3)} and ${told.robust.loss.toFixed(3)}.`;
  if ($("plane-words").textContent !== words) $("plane-words").textContent = words; // it is read aloud when it is written
}
