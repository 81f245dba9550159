// The toy example of the paper: mtbayes/experiments/toy.py and mtbayes/theory/sensitivity.py, in the page.
// ν = .7 N(2, 2) + .3 N(-2, 2) is to be learned; the model is N(θ, 1), the prior N(mean, 9).

const GRID = 500, HALF = 30, PRIOR_STD = 3;
const SPACING = 2 * HALF / (GRID - 1);
const THETA = Float64Array.from({ length: GRID }, (_, g) => -HALF + g * SPACING);
const LOG_ROOT = 0.5 * Math.log(2 * Math.PI);
const X_STEP = 0.02, X_SIZE = 2001;
const X = Float64Array.from({ length: X_SIZE }, (_, i) => -20 + i * X_STEP);
const REACH = 9; // standard deviations, beyond which a density is 0 here

const normal = (x, mean = 0, std = 1) => Math.exp(-0.5 * ((x - mean) / std) ** 2 - LOG_ROOT) / std;
const trueDensity = x => 0.7 * normal(x, 2, Math.SQRT2) + 0.3 * normal(x, -2, Math.SQRT2);
const NU = X.map(trueDensity);

const logPriorAt = mean => normalised(THETA.map(v => -0.5 * ((v - mean) / PRIOR_STD) ** 2));
const rowAt = x => new Row(THETA.map(v => -0.5 * (v - x) ** 2 - LOG_ROOT));

// p_θ(x) for the θ near each x: first index and densities.
const NEAR = (() => {
  const width = Math.ceil(2 * REACH / SPACING), first = new Int32Array(X_SIZE), table = new Float64Array(X_SIZE * width);
  for (let i = 0; i < X_SIZE; i++) {
    first[i] = Math.max(0, Math.min(GRID - width, Math.ceil((X[i] - REACH + HALF) / SPACING)));
    for (let j = 0; j < width; j++) table[i * width + j] = normal(X[i], THETA[first[i] + j]);
  }
  return { width, first, table };
})();

/** p_q on the grid X. */
function predictive(q) {
  const { width, first, table } = NEAR, p = new Float64Array(X_SIZE);
  for (let i = 0; i < X_SIZE; i++) {
    let sum = 0;
    for (let j = 0, at = i * width, g = first[i]; j < width; j++) sum += q[g + j] * table[at + j];
    p[i] = sum;
  }
  return p;
}

/** p_q at one x. */
function predictiveAt(q, x) {
  let sum = 0;
  for (let g = 0; g < GRID; g++) sum += q[g] * normal(x, THETA[g]);
  return sum;
}

/** ½∫|p - ν|: between points the difference is linear, split where it changes sign. */
function totalVariation(p) {
  let sum = 0;
  for (let i = 1; i < X_SIZE; i++) {
    const left = p[i - 1] - NU[i - 1], right = p[i] - NU[i], size = Math.abs(left) + Math.abs(right);
    sum += left * right < 0 ? (left ** 2 + right ** 2) / size : size;
  }
  return Math.min(0.25 * X_STEP * sum, 1);
}

/** ∂_φ R(z) of Figure 3: q = N(φ, 1), the model N(θ, 1), m = ∞. */
function contaminationTerm(z, phi, t) {
  const u = z - phi, a = 1 - t;
  return -Math.pow(4 * Math.PI, -a / 2) * 0.5 * u * Math.exp(-a * u * u / 4);
}

/** φ*, the lowest minimum of the mean loss over φ. */
function gaussianMinimum(points, t) {
  const a = 1 - t, mean = f => points.reduce((sum, x) => sum + f(x), 0) / points.length;
  const slope = phi => mean(x => contaminationTerm(x, phi, t));
  const value = phi => mean(x => { const s = (x - phi) ** 2 / 4; return a ? -Math.pow(4 * Math.PI, -a / 2) * Math.expm1(-a * s) / a : s; });
  const low = Math.min(0, ...points) - 1, count = Math.ceil((Math.max(0, ...points) + 1 - low) / 0.05);
  const step = (Math.max(0, ...points) + 1 - low) / (count - 1);
  let best = null, before = slope(low);
  for (let i = 1; i < count; i++) {
    const at = low + i * step, now = slope(at);
    if (before < 0 && now >= 0) {
      const phi = rootOf(slope, at - step, at), loss = value(phi);
      if (!best || loss < best.loss) best = { phi, loss };
    }
    before = now;
  }
  return best ? best.phi : mean(x => x);
}
