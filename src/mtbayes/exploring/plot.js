// What both tabs draw with: elements of SVG, axes, curves. Colours are those of the page's style.

const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

/** A new element of SVG with attributes, in a parent. */
function draw(name, attributes, parent, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
}

/** A number as people read it, with a true minus sign. */
const shown = (value, digits = 2) => value.toFixed(digits).replace("-", "\u2212");

/** A plot of two heights, for wide and for narrow pages, whose text keeps its size: one unit is one pixel, and it is laid out anew when it changes width. */
class Plot {
  constructor(id, heights, from, to) {
    this.svg = $(id);
    Object.assign(this, { heights, from, to, top: 1, left: 16, right: 16, foot: 22, head: 8 });
    this.back = draw("g", {}, this.svg); // axes
    this.curves = draw("g", {}, this.svg);
    this.front = draw("g", {}, this.svg);
    this.paths = {};
  }

  layout() {
    this.width = Math.max(200, this.svg.parentElement.clientWidth);
    this.height = this.heights[this.width < 500 ? 1 : 0];
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    this.back.replaceChildren();
    const base = this.height - this.foot;
    draw("line", { x1: this.left, x2: this.width - this.right, y1: base, y2: base, class: "axis" }, this.back);
    for (let x = Math.ceil(this.from / 2) * 2; x <= this.to; x += this.width < 500 ? 4 : 2) {
      draw("line", { x1: this.px(x), x2: this.px(x), y1: base, y2: base + 4, class: "axis" }, this.back);
      draw("text", { x: this.px(x), y: base + 17, "text-anchor": "middle" }, this.back, String(x).replace("-", "\u2212"));
    }
  }

  px(x) { return this.left + (x - this.from) / (this.to - this.from) * (this.width - this.left - this.right); }

  py(y) { return this.height - this.foot - y / this.top * (this.height - this.foot - this.head); }

  /** Where on the axis a pointer is. */
  at(event) {
    const box = this.svg.getBoundingClientRect(), inside = (event.clientX - box.left) / box.width * this.width;
    return this.from + (inside - this.left) / (this.width - this.left - this.right) * (this.to - this.from);
  }

  /** The curve of this name through (x, y); closed down to the axis where it is filled. */
  curve(name, xs, ys, { every = 1, fill = false } = {}) {
    this.paths[name] ||= draw("path", { class: `curve ${name}` }, this.curves);
    let d = "";
    for (let i = 0; i < xs.length; i += every) {
      if (xs[i] < this.from || xs[i] > this.to) continue;
      const y = Math.max(-50, this.py(ys[i]));
      d += `${d ? "L" : "M"}${this.px(xs[i]).toFixed(1)} ${y.toFixed(1)}`;
    }
    if (fill) d += `L${this.px(this.to)} ${this.py(0)}L${this.px(this.from)} ${this.py(0)}Z`;
    this.paths[name].setAttribute("d", d);
  }
}

/** Shows which one of a group's buttons holds; none where null. */
function press(group, value) {
  for (const button of $(group).children) button.setAttribute("aria-pressed", String(button.value === value));
}

/** One call of `work` in the next frame, however often it is asked for. */
function inFrames(work) {
  let asked = false;
  return function ask() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; if (work()) ask(); });
  };
}
