// Logistic regression on random features, trained by the t-logarithm: majorise and minimise.
//
// J(θ) = Σ_i -log_t p_θ(y_i | x_i) + λ|θ|²/2. Each step weighs rows by w_i = p_i^(1-t), as
// mtbayes/maths/majorise.py does with one member, and takes Newton's step of the weighted log loss, halved
// until J falls. At t = 1 J is convex; below, the descent begins at t = 1's answer, so that what is shown
// follows from the rows and t alone.

const FEATURES = 90, WIDTH = 0.55, LAMBDA = 0.08, CLOSE = 1e-6;

/** Random numbers that are the same for everybody (mulberry32), uniform and normal. */
function randomNumbers(seed) {
  const uniform = () => {
    seed = seed + 0x6D2B79F5 | 0;
    let v = Math.imul(seed ^ seed >>> 15, 1 | seed);
    v = v + Math.imul(v ^ v >>> 7, 61 | v) ^ v;
    return ((v ^ v >>> 14) >>> 0) / 4294967296;
  };
  return { uniform, normal: () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()) };
}

// cos(ω·x + b), whose inner products are those of a Gaussian kernel of this width; and a constant.
const WAVES = (() => {
  const { normal: gauss, uniform } = randomNumbers(7);
  return Array.from({ length: FEATURES - 1 }, () => [gauss() / WIDTH, gauss() / WIDTH, 2 * Math.PI * uniform()]);
})();

function features([x, y]) {
  const scale = Math.sqrt(2 / WAVES.length) * 2, row = new Float64Array(FEATURES);
  for (let j = 0; j < WAVES.length; j++) row[j] = scale * Math.cos(WAVES[j][0] * x + WAVES[j][1] * y + WAVES[j][2]);
  row[FEATURES - 1] = 1;
  return row;
}

const sigmoid = s => s > 0 ? 1 / (1 + Math.exp(-s)) : Math.exp(s) / (1 + Math.exp(s));

class Logistic {
  /** rows: features; labels: 0 or 1; t; start: θ, or null for 0. */
  constructor(rows, labels, t, start) {
    Object.assign(this, { rows, t, signs: labels.map(y => 2 * y - 1), steps: 0, done: false });
    this.theta = start ? start.slice() : new Float64Array(FEATURES);
    this.value = this.objective(this.theta);
  }

  /** log p of each row's label. */
  logLik(theta) {
    return this.rows.map((row, i) => -Math.log1p(Math.exp(-Math.max(-500, this.signs[i] * dot(row, theta)))));
  }

  objective(theta) {
    return LAMBDA * dot(theta, theta) / 2 - this.logLik(theta).reduce((sum, l) => sum + logT(l, this.t), 0);
  }

  weights() { return this.logLik(this.theta).map(l => Math.exp((1 - this.t) * l)); }

  step() {
    const { rows, signs, theta } = this, gradient = theta.map(v => LAMBDA * v), weights = this.weights();
    const bend = Array.from({ length: FEATURES }, () => new Float64Array(FEATURES));
    rows.forEach((row, i) => {
      const miss = 1 - sigmoid(signs[i] * dot(row, theta)), pull = -weights[i] * miss * signs[i];
      const curve = weights[i] * miss * (1 - miss);
      for (let j = 0; j < FEATURES; j++) {
        gradient[j] += pull * row[j];
        const factor = curve * row[j], line = bend[j];
        for (let k = 0; k <= j; k++) line[k] += factor * row[k];
      }
    });
    for (let j = 0; j < FEATURES; j++) bend[j][j] += LAMBDA;
    this.steps++;
    this.gradient = Math.sqrt(dot(gradient, gradient));
    if (this.gradient < CLOSE) { this.done = true; return; }
    this.take(solved(bend, gradient));
  }

  take(direction) {
    for (let size = 1; size > 1e-6; size /= 2) {
      const theta = this.theta.map((v, j) => v - size * direction[j]), value = this.objective(theta);
      if (value < this.value) { Object.assign(this, { theta, value }); return; }
    }
    this.done = true; // at the limit of double precision
  }

  run(milliseconds = Infinity, most = 500) {
    const end = performance.now() + milliseconds;
    while (!this.done && performance.now() < end) { this.step(); if (this.steps >= most) this.done = true; }
    return this;
  }
}

/** x with A x = b, A positive definite and given by its lower half, which is overwritten (Cholesky). */
function solved(A, b) {
  const n = b.length, x = b.slice();
  for (let j = 0; j < n; j++) for (let k = 0; k <= j; k++) {
    let sum = A[j][k];
    for (let l = 0; l < k; l++) sum -= A[j][l] * A[k][l];
    A[j][k] = j === k ? Math.sqrt(sum) : sum / A[k][k];
  }
  for (let j = 0; j < n; j++) { for (let k = 0; k < j; k++) x[j] -= A[j][k] * x[k]; x[j] /= A[j][j]; }
  for (let j = n - 1; j >= 0; j--) { for (let k = j + 1; k < n; k++) x[j] -= A[k][j] * x[k]; x[j] /= A[j][j]; }
  return x;
}
