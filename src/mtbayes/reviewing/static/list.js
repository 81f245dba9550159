// The side list: as long as there are rows, but with those in sight alone on the page.
import { by, get, make, percent } from "./api.js";

const HEIGHT = 44, PAGE = 60;
const MARKS = { open: "", correct: "→", keep: "✓", drop: "✕", skip: "…" };
const WORDS = { open: "open", correct: "corrected", keep: "kept", drop: "dropped", skip: "skipped" };

export class List {
  constructor(choose) {
    this.choose = choose;
    this.box = by("list");
    this.tall = by("tall");
    this.pages = new Map();
    this.total = 0;
    this.current = null;
    this.turn = 0;
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.box.addEventListener("click", event => {
      const line = event.target.closest("[data-row]");
      if (line) this.choose(Number(line.dataset.row));
    });
    by("state").addEventListener("change", () => this.filter());
    by("text").addEventListener("input", () => {
      clearTimeout(this.wait);
      this.wait = setTimeout(() => this.filter(), 150);
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  get asked() { return { state: by("state").value, text: by("text").value }; }

  filter() {
    this.box.scrollTop = 0;
    return this.fresh();
  }

  // Everything anew; the row that is shown comes into sight.
  async fresh(row = null) {
    const turn = ++this.turn;
    const asked = row === null ? {} : { row };
    const first = await get("api/rows", { begin: 0, count: PAGE, ...this.asked, ...asked });
    if (turn !== this.turn) return;
    this.pages.clear();
    this.pages.set(0, first.rows);
    this.total = first.total;
    this.tall.style.height = `${HEIGHT * this.total}px`;
    by("count").textContent = `${this.total.toLocaleString("en")} row${this.total === 1 ? "" : "s"}`;
    if (row !== null) {
      this.current = row;
      if (first.at !== null && first.at !== undefined) this.show(first.at);
    }
    this.draw();
  }

  show(at) {
    const top = at * HEIGHT, seen = this.box.clientHeight;
    if (top < this.box.scrollTop || top + HEIGHT > this.box.scrollTop + seen)
      this.box.scrollTop = Math.max(0, top - seen / 2);
  }

  async load(page) {
    if (this.pages.has(page)) return;
    const turn = this.turn;
    this.pages.set(page, null);
    const found = await get("api/rows", { begin: page * PAGE, count: PAGE, ...this.asked });
    if (turn !== this.turn) return;
    this.pages.set(page, found.rows);
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / HEIGHT) - 4);
    const last = Math.min(this.total, first + Math.ceil(this.box.clientHeight / HEIGHT) + 9);
    const lines = [];
    for (let at = first; at < last; at++) {
      const page = Math.floor(at / PAGE);
      const rows = this.pages.get(page);
      if (rows === undefined) this.load(page).catch(() => {});
      if (rows && rows[at % PAGE]) lines.push(this.line(rows[at % PAGE], at));
    }
    this.tall.replaceChildren(...lines);
    const shown = by(`line${this.current}`);
    if (shown) this.box.setAttribute("aria-activedescendant", shown.id);
    else this.box.removeAttribute("aria-activedescendant");
  }

  line(row, at) {
    const changed = row.value !== row.given;
    const to = row.state === "drop" ? "dropped" : row.state === "keep" || !changed ? "" : `→ ${row.value}`;
    const line = make("div", {
      class: `line ${row.state}`, role: "option", id: `line${row.row}`, "data-row": row.row, "aria-posinset": at + 1,
      "aria-setsize": this.total, "aria-selected": row.row === this.current,
      "aria-label": `row ${row.place}, ${WORDS[row.state]}, given ${row.given}${to ? `, ${to.replace("→", "now")}` : ""}`,
    },
      make("span", { class: "mark", "aria-hidden": "true" }, MARKS[row.state]),
      make("span", { class: "place" }, String(row.place)),
      make("span", { class: "change" }, row.given, " ", make("b", {}, to)),
      make("span", { class: "wrong" }, row.state === "open" ? percent(row.wrong) : ""));
    line.style.transform = `translateY(${at * HEIGHT}px)`;
    return line;
  }
}
