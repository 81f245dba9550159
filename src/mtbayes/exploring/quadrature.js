// The exact multi-sample loss on a finite support: mtbayes/maths/expectation.py, in the page.
//
// With a = 1-t, S = p_θ + (a sum of m-1 members) and E S = p_θ + (m-1) p̄,
//
//   E log_t S = log_t(E S) - ∫ e^{-u p_θ} w(u) dlog u,
//   w(u) = u^{-a}/Γ(1-a) · ( φ(u)^{m-1} - e^{-u (m-1) p̄} ),   φ(u) = Σ_g q_g e^{-u p_g},
//
// by the trapezium rule in log u. What is new here is the table: expm1(-u p) is -1 where u p is large and
// -u p where it is small, so that only a band of nodes is kept for each support point, and the rest are
// running sums. One evaluation then costs the same however wide the range of u has to be.

const STEP = 0.35, TINY = 1e-16;
const LOW = -14, HIGH = 3.65; // of log(u p): below, expm1(-u p) is -u p to 4e-13; above it is -1
const NOTHING = 1e-15; // mass that cannot be seen in a sum
const BAND = Math.ceil((HIGH - LOW) / STEP) + 1;
const SHRINK = Math.exp(-STEP);

const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
  -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];

/** 1/Γ(x) for x in (0, 1], by Lanczos at x + 1. */
function reciprocalGamma(x) {
  let sum = LANCZOS[0];
  for (let i = 1; i < 9; i++) sum += LANCZOS[i] / (x + i);
  const w = x + 7.5;
  return x / (Math.sqrt(2 * Math.PI) * Math.pow(w, x + 0.5) * Math.exp(-w) * sum);
}

/** The t-logarithm of x, given log x. */
const logT = (logX, t) => t === 1 ? logX : Math.expm1((1 - t) * logX) / (1 - t);

/** log(e^a + e^b). */
function logAdd(a, b) {
  const top = Math.max(a, b);
  return top === -Infinity ? top : top + Math.log1p(Math.exp(-Math.abs(a - b)));
}

function logSumExp(values) {
  let top = -Infinity, sum = 0;
  for (const v of values) if (v > top) top = v;
  if (top === -Infinity) return top;
  for (const v of values) sum += Math.exp(v - top);
  return top + Math.log(sum);
}

/** One data row: log p_θ(x) over the support, in units of its largest, and its band of the table. */
class Row {
  constructor(logLik) {
    this.size = logLik.length;
    this.top = Math.max(...logLik);
    this.logP = logLik.map(v => v - this.top);
    this.p = this.logP.map(Math.exp);
    this.least = Math.min(...this.logP);
    this.first = new Int32Array(this.size); // the node where the band of a point begins
    this.edge = new Float64Array(this.size); // u p there
    this.band = new Float64Array(this.size * BAND);
    const grow = Math.exp(STEP);
    for (let g = 0; g < this.size; g++) {
      this.first[g] = Math.ceil((LOW - this.logP[g]) / STEP);
      let up = this.edge[g] = Math.exp(this.first[g] * STEP + this.logP[g]);
      for (let j = g * BAND; j < (g + 1) * BAND; j++, up *= grow) this.band[j] = Math.expm1(-up);
    }
  }

  /** log Σ_g q_g p_g. */
  logMean(q, logQ) {
    let sum = 0;
    for (let g = 0; g < this.size; g++) sum += q[g] * this.p[g];
    return sum < 1e-290 ? logSumExp(this.logP.map((v, g) => v + logQ[g])) : Math.log(sum);
  }

  /** Adds E log_t of the mean of θ and m-1 members from q to out[g]; m = Infinity is log_t p̄. */
  expectedLogT(q, logQ, m, t, out) {
    const a = 1 - t, logMean = this.logMean(q, logQ);
    if (m === Infinity) {
      const value = logT(logMean + this.top, t);
      for (let g = 0; g < this.size; g++) out[g] += value;
      return logMean;
    }
    const scale = this.top - Math.log(m), rest = Math.log(m - 1) + logMean;
    const spread = m > 1 && t > 0 ? this.integral(q, logMean, m - 1, a) : null;
    const factor = Math.exp(a * scale);
    for (let g = 0; g < this.size; g++) {
      out[g] += logT(logAdd(this.logP[g], rest) + scale, t);
      if (spread) out[g] -= factor * spread[g];
    }
    return logMean;
  }

  /** ∫ e^{-u p_θ} w(u) dlog u for each point θ. */
  integral(q, logMean, others, a) {
    const t = 1 - a;
    const begin = Math.floor((Math.log(TINY) - t * Math.log(1 + others)) / ((1 + t) * STEP));
    const nodes = Math.ceil((4 - this.least) / STEP) + 1 - begin;
    const sums = this.tableTimes(q, begin, nodes);
    const w = sums, gain = STEP * reciprocalGamma(t);
    const fade = Math.exp(-a * STEP);
    let used = nodes, size = gain * Math.exp(-a * begin * STEP), drift = others * Math.exp(begin * STEP + logMean);
    for (let k = 0; k < nodes; k++, size *= fade, drift /= SHRINK) {
      const logProduct = others * Math.log1p(Math.max(sums[k], -1));
      w[k] = size * difference(logProduct, drift);
      // e^-drift <= φ^(m-1), so this bounds all that follows.
      if (logProduct < -20 && size * Math.exp(logProduct) < TINY) { used = k + 1; break; }
    }
    return this.timesTable(w, begin, used);
  }

  /** Σ_g q_g expm1(-u_k p_g) for each node k. */
  tableTimes(q, begin, nodes) {
    const { first, band, edge } = this, sums = new Float64Array(nodes);
    const full = new Float64Array(nodes + 1), slight = new Float64Array(nodes + 1);
    for (let g = 0; g < this.size; g++) {
      const mass = q[g], start = first[g] - begin;
      if (mass < NOTHING) continue;
      if (start > 0) slight[Math.min(start, nodes)] += mass * edge[g] * Math.exp(STEP * Math.min(0, nodes - start));
      const end = Math.min(start + BAND, nodes), shift = g * BAND - start;
      for (let k = Math.max(start, 0); k < end; k++) sums[k] += mass * band[shift + k];
      if (end >= 0 && end < nodes) full[end] += mass; else if (end < 0) full[0] += mass;
    }
    for (let k = 0, saturated = 0; k < nodes; k++) sums[k] -= saturated += full[k];
    for (let k = nodes - 1, small = 0; k >= 0; k--) {
      small = (small + slight[k + 1]) * SHRINK;
      sums[k] -= small;
    }
    return sums;
  }

  /** Σ_k w_k e^{-u_k p_g} for each point g. */
  timesTable(w, begin, used) {
    const { first, band, edge } = this, total = new Float64Array(this.size);
    const sum = new Float64Array(used + 1), tilted = new Float64Array(used + 1);
    for (let k = 0; k < used; k++) {
      sum[k + 1] = sum[k] + w[k];
      tilted[k + 1] = (tilted[k] + w[k]) * SHRINK; // Σ_{j <= k} w_j u_j / u_{k+1}
    }
    for (let g = 0; g < this.size; g++) {
      const start = first[g] - begin, from = Math.max(start, 0);
      const end = Math.max(0, Math.min(start + BAND, used)), shift = g * BAND - start;
      let value = sum[end];
      for (let k = from; k < end; k++) value += w[k] * band[shift + k];
      if (start >= used) value -= tilted[used] * edge[g] * Math.exp(STEP * (used - start));
      else if (start > 0) value -= tilted[start] * edge[g];
      total[g] = value;
    }
    return total;
  }
}

/** e^logProduct - e^-drift, without cancellation where the two are close. */
function difference(logProduct, drift) {
  const gap = logProduct + drift;
  if (gap < 1) return Math.exp(-drift) * Math.expm1(gap);
  return Math.exp(logProduct) - (drift < 750 ? Math.exp(-drift) : 0);
}
