// Another value: typed, with the classes that fit it below; or a number.
import { by, make, percent } from "./api.js";

const MOST = 8;

export class Combo {
  constructor(take) {
    this.take = take;
    this.input = by("value");
    this.box = by("options");
    this.found = [];
    this.at = 0;
    this.input.addEventListener("input", () => this.fill());
    this.input.addEventListener("keydown", event => this.key(event));
    this.input.addEventListener("blur", () => this.close());
    this.box.addEventListener("pointerdown", event => {
      const line = event.target.closest("[data-at]");
      if (line) { event.preventDefault(); this.at = Number(line.dataset.at); this.choose(); }
    });
  }

  // The classes of the review, and the row's most probable ones.
  about(state, row) {
    this.numbers = state.task === "number";
    this.classes = state.classes || [];
    if (this.row?.row !== row.row) this.close();  // what is typed about a row stays until it goes
    this.row = row;
    this.input.inputMode = this.numbers ? "decimal" : "text";
    const few = this.classes.length > 0 && this.classes.length <= 10;
    const digits = this.digits = few && this.classes.every(one => /^\d$/.test(one));
    by("digits").textContent = digits ? "take that class (0 too)" : "take a value of the list";
    by("candidates").replaceChildren(...row.candidates.map((one, i) => make("li", {},
      make("button", { onclick: () => this.take(one.value) },
        this.numbers ? null : make("kbd", { class: digits ? "own" : "" }, digits ? one.value : String(i + 1)), digits ? "" : ` ${one.value}`,
        one.chance === null ? null : make("span", { class: "quiet" }, ` ${percent(one.chance)}`)))));
  }

  // The value of a digit key; undefined if it has none.
  digit(key) {
    if (this.digits) return this.classes.includes(key) ? key : undefined;
    return this.row.candidates[Number(key) - 1]?.value;
  }

  open(first = "") {
    this.input.value = first;
    this.input.focus();
    this.fill();
  }

  close() {
    this.input.value = "";
    this.box.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  fill() {
    const text = this.input.value.trim(), low = text.toLowerCase();
    const rank = new Map(this.row.candidates.map((one, i) => [one.value, i]));
    const fits = this.numbers ? [] : this.classes.map(value => {
      const place = value.toLowerCase().indexOf(low);
      return { value, sort: [value.toLowerCase() === low ? 0 : place === 0 ? 1 : 2, rank.get(value) ?? 99], place };
    }).filter(one => one.place >= 0);
    fits.sort((a, b) => a.sort[0] - b.sort[0] || a.sort[1] - b.sort[1] || a.value.localeCompare(b.value, undefined, { numeric: true }));
    this.found = fits.slice(0, MOST).map(one => ({ value: one.value, label: one.value }));
    if (text && !this.classes.includes(text))
      this.found.push({ value: text, label: this.numbers ? `set to ${text}` : `“${text}” as a new value` });
    this.at = 0;
    this.draw(fits.length - Math.min(MOST, fits.length));
  }

  draw(more = 0) {
    this.box.replaceChildren(...this.found.map((one, i) => make("li", {
      role: "option", id: `option${i}`, "data-at": i, "aria-selected": i === this.at,
    }, one.label)), ...(more ? [make("li", { class: "quiet", role: "presentation" }, `and ${more} more: go on typing`)] : []));
    this.box.hidden = !this.found.length;
    this.input.setAttribute("aria-expanded", String(!this.box.hidden));
    if (this.found.length) this.input.setAttribute("aria-activedescendant", `option${this.at}`);
  }

  key(event) {
    if (event.isComposing) return;
    if (event.key === "Escape") { this.close(); by("heading").focus(); }
    else if (event.key === "Enter") this.choose();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.at = (this.at + step + this.found.length) % Math.max(1, this.found.length);
      this.draw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  choose() {
    const one = this.found[this.at];
    if (one) this.take(one.value);
  }
}
