// Theorem 1 on a grid: mtbayes/solve/on_grid.py and mtbayes/posteriors/grid.py, in the page.
// J is convex in q, so that any start ends at the same minimum: a drag begins at the last answer.

const MEMORY = 6, SMALLEST_DAMPING = 1e-9, MOST_STEPS = 2000, STALLED = 1e-5;
const OF_PRIOR = 0.03; // what a start at m = ∞ takes of it: where the last answer has no mass, a row would pull without bound

function normalised(logQ) {
  const total = logSumExp(logQ);
  return logQ.map(v => v - total);
}

const dot = (a, b) => { let sum = 0; for (let i = 0; i < a.length; i++) sum += a[i] * b[i]; return sum; };

/** D^R_{t_p}(q||p); KL at t_p = 1. */
function divergence(q, logQ, logPrior, tP) {
  let sum = 0;
  for (let g = 0; g < q.length; g++) {
    if (tP === 1) sum += q[g] === 0 ? 0 : q[g] * (logQ[g] - logPrior[g]);
    else sum += Math.exp(tP * logQ[g] + (1 - tP) * logPrior[g]);
  }
  return tP === 1 ? sum : Math.log(sum) / (tP - 1);
}

/** log q of the q that minimises D(q||p) - Σ q·gain, for t_p in (0, 1]; see `posteriors.grid.tilt`. */
function tilt(logPrior, gain, tP) {
  let top = -Infinity;
  for (const v of gain) if (v > top) top = v;
  const gap = gain.map(v => top - v);
  if (tP === 1) return normalised(logPrior.map((v, g) => v - gap[g]));
  const room = tP / (1 - tP);
  const powerLaw = x => normalised(logPrior.map((v, g) => v - Math.log1p(gap[g] / x) / (1 - tP)));
  const excess = x => x + dot(powerLaw(x).map(Math.exp), gap) - room;
  let low = room;
  while (excess(low) > 0) low /= 16;
  return powerLaw(low === room ? room : rootOf(excess, low, room));
}

/** The root of a growing function between low and high: false position, with Illinois' remedy. */
function rootOf(f, low, high) {
  let fLow = f(low), fHigh = f(high), side = 0;
  for (let i = 0; i < 200 && high - low > 1e-14 * high; i++) {
    let x = (low * fHigh - high * fLow) / (fHigh - fLow);
    if (!(x > low && x < high)) x = (low + high) / 2;
    const value = f(x);
    if (value === 0 || x === low || x === high) return x;
    if (value < 0) { low = x; fLow = value; if (side === -1) fHigh /= 2; side = -1; }
    else { high = x; fHigh = value; if (side === 1) fLow /= 2; side = 1; }
    if (Math.abs(value) < 1e-15 * (1 + high)) return x;
  }
  return (low + high) / 2;
}

/** Anderson's acceleration, over the last few moves, in the metric of q. */
class Anderson {
  constructor() { this.moves = []; this.changes = []; }

  remember(move, change) {
    this.moves.push(move); this.changes.push(change);
    if (this.moves.length > MEMORY) { this.moves.shift(); this.changes.shift(); }
  }

  forget() { this.moves = []; this.changes = []; }

  /** The damped step, after taking out what past moves explain of it. */
  step(step, q, damping) {
    const root = q.map(Math.sqrt);
    const centred = v => { const mean = dot(v, q); return v.map((x, g) => (x - mean) * root[g]); };
    const share = leastSquares(this.changes.map(centred), centred(step));
    const result = step.map(v => damping * v);
    share.forEach((s, j) => {
      const change = this.changes[j], move = this.moves[j];
      for (let g = 0; g < result.length; g++) result[g] -= s * (damping * change[g] + move[g]);
    });
    return result;
  }
}

/** Shares of columns that explain a target best; columns that others explain already get 0. */
function leastSquares(columns, target) {
  const left = columns.map(c => c.slice()), goal = target.slice(), order = [], basis = [];
  const most = Math.max(...left.map(c => Math.sqrt(dot(c, c))));
  const coefficient = columns.map(() => new Float64Array(columns.length)), onto = [];
  for (let round = 0; round < columns.length; round++) {
    const norms = left.map((c, j) => order.includes(j) ? -1 : Math.sqrt(dot(c, c)));
    const best = norms.indexOf(Math.max(...norms));
    if (!(norms[best] > 1e-10 * most)) break;
    const unit = left[best].map(v => v / norms[best]);
    for (let j = 0; j < left.length; j++) if (!order.includes(j)) {
      const share = dot(unit, left[j]);
      coefficient[round][j] = share;
      for (let g = 0; g < unit.length; g++) left[j][g] -= share * unit[g];
    }
    const share = dot(unit, goal);
    for (let g = 0; g < unit.length; g++) goal[g] -= share * unit[g];
    order.push(best); basis.push(unit); onto.push(share);
  }
  const result = new Array(columns.length).fill(0);
  for (let r = order.length - 1; r >= 0; r--) {
    let value = onto[r];
    for (let later = r + 1; later < order.length; later++) value -= coefficient[r][order[later]] * result[order[later]];
    result[order[r]] = value / coefficient[r][order[r]];
  }
  return result;
}

/** One problem on its way down: `step` until `done`. */
class Descent {
  /** rows: of `Row`; logPrior; criterion {m, t, beta, tP}; start: log q, or null for the prior; past: of a problem close by. */
  constructor(rows, logPrior, criterion, start, tol = 1e-7, past = new Anderson()) {
    Object.assign(this, { rows, logPrior, ...criterion, tol });
    this.strength = this.beta === Infinity ? 0 : this.m / (rows.length * this.beta);
    const mixed = start && !this.strength;
    this.logQ = normalised(mixed ? start.map((v, g) => logAdd(v + Math.log(1 - OF_PRIOR), logPrior[g] + Math.log(OF_PRIOR))) : start || logPrior);
    Object.assign(this, this.evaluate(this.logQ));
    this.damping = 1; this.steps = 0; this.past = past;
  }

  get spent() { return this.damping <= SMALLEST_DAMPING || this.steps >= MOST_STEPS; }

  /** J may stall in double precision a little before the tolerance. Not without a regulariser, where a small step need not be near the end. */
  get settled() { return this.residual <= (this.spent && this.strength ? Math.max(this.tol, STALLED) : this.tol); }

  /** No more is to be had: settled, or given up. */
  get done() { return this.settled || this.spent; }

  get q() { return this.logQ.map(Math.exp); }

  /**
   * J at q, the target log T(q), and the total variation between the two. At m = ∞ with s_g = Σ_i p̄_i^{-t} p_g(x_i), the
   * negative slope of J, T(q) ∝ q s: EM, which never increases J.
   */
  evaluate(logQ) {
    const { m, t, rows, strength } = this, n = rows.length, q = logQ.map(Math.exp);
    const given = new Float64Array(q.length), slope = new Float64Array(q.length).fill(-Infinity); // log s at m = ∞
    for (const row of rows) {
      const logMean = row.expectedLogT(q, logQ, m, t, given);
      if (m === Infinity) {
        const factor = (1 - t) * row.top - t * logMean;
        for (let g = 0; g < q.length; g++) slope[g] = logAdd(slope[g], factor + row.logP[g]);
      }
    }
    if (m !== Infinity) for (let g = 0; g < q.length; g++) slope[g] = m * given[g] / n;
    let value = -dot(q, given) / n;
    if (strength) value += strength * divergence(q, logQ, this.logPrior, this.tP);
    const target = strength ? tilt(this.logPrior, slope.map(v => v / strength), this.tP)
      : normalised(logQ.map((v, g) => v + slope[g]));
    let residual = 0;
    for (let g = 0; g < q.length; g++) residual += Math.abs(Math.exp(target[g]) - q[g]) / 2;
    return { value, target, residual };
  }

  step() {
    const { logQ, target, past, damping } = this;
    const toward = target.map((v, g) => v - logQ[g]);
    let proposal;
    if (past.moves.length) {
      const step = past.step(toward, logQ.map(Math.exp), damping);
      proposal = logQ.map((v, g) => v + step[g]);
    } else if (this.tP < 1) {
      const stay = Math.log1p(-damping), go = Math.log(damping);
      proposal = logQ.map((v, g) => logAdd(stay + v, go + target[g]));
    } else proposal = logQ.map((v, g) => v + damping * toward[g]);
    this.judge(normalised(proposal), toward);
  }

  /** A proposal that would increase J is not taken. */
  judge(proposal, toward) {
    const found = this.evaluate(proposal);
    this.steps++;
    if (found.value <= this.value) {
      this.past.remember(proposal.map((v, g) => v - this.logQ[g]),
        found.target.map((v, g) => v - proposal[g] - toward[g]));
      Object.assign(this, found, { logQ: proposal, damping: Math.min(1, 1.5 * this.damping) });
    } else if (this.past.moves.length) this.past.forget();
    else this.damping /= 2;
  }

  /** Steps until it is done or the clock is up. */
  run(milliseconds = Infinity, most = MOST_STEPS) {
    const end = performance.now() + milliseconds;
    while (!this.done && this.steps < most && performance.now() < end) this.step();
    return this;
  }
}
