// Wrong rows found against rows looked at, and how it will probably go on.
const SVG = "http://www.w3.org/2000/svg";

function draw(tag, options, text) {
  const found = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(options)) found.setAttribute(name, value);
  if (text !== undefined) found.textContent = text;
  return found;
}

export function chart(box, state) {
  const width = 400, height = 210, left = 40, low = 34, top = 24, right = 12;
  const past = [[0, 0], ...state.curve.map((found, i) => [i + 1, found])];
  const future = [past[past.length - 1], ...state.ahead];
  const most = Math.max(10, ...future.map(p => p[0])), high = Math.max(2, ...future.map(p => p[1]));
  const x = v => left + (width - left - right) * v / most;
  const y = v => height - low - (height - low - top) * v / high;
  const line = points => points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("");
  const label = `${state.found} wrong rows found in ${state.looked} rows looked at; about ${Math.round(state.remaining)} remain.`;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const v of steps(high)) svg.append(
    draw("line", { x1: left, x2: width - right, y1: y(v), y2: y(v), class: "grid" }),
    draw("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, v));
  for (const v of steps(most)) svg.append(
    draw("text", { x: x(v), y: height - low + 18, "text-anchor": "middle" }, v));
  svg.append(
    draw("path", { d: line(future), class: "ahead" }), draw("path", { d: line(past), class: "past" }),
    draw("circle", { cx: x(state.looked), cy: y(state.found), r: 4, class: "now" }),
    draw("text", { x: (left + width - right) / 2, y: height - 2, "text-anchor": "middle" }, "rows looked at"),
    draw("text", { x: 2, y: 12 }, "wrong rows found"));
  box.replaceChildren(svg);
}

function steps(most) {
  const raw = most / 4, power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, [1, 2, 5, 10].map(v => v * power).find(v => v >= raw));
  const found = [];
  for (let v = 0; v <= most + 1e-9; v += step) found.push(Math.round(v));
  return found;
}
