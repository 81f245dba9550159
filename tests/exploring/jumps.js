// Put at the end of the page by test_page.py: sliders jump from end to end at m = ∞, each answer the start of the next.
const settle = () => { line.solving.run(); line.plain.run(); frame(); };
const set = (id, value) => { const one = document.getElementById(id); one.value = value; one.dispatchEvent(new Event("input")); settle(); };
const seen = { bad, jumps: [] };
for (const order of [[0, 100], [100, 0, 100], [50, 0, 30, 100, 0]]) {
  takePreset("outlier"); settle(); set("set-m", 51);
  for (const t of order) {
    set("set-t", t);
    seen.jumps.push({ t: line.t, q: [...line.solving.q], plain: [...line.plain.q],
      settled: [line.solving, line.plain].every(solve => solve.residual <= solve.tol), told: $("state").textContent + $("words").textContent });
  }
}
const out = document.createElement("pre"); out.id = "seen";
out.textContent = JSON.stringify(seen); document.body.append(out);
