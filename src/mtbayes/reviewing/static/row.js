// One row: what is given and suggested, why, its columns, and rows like it.
import { by, make, percent } from "./api.js";

const WORDS = { correct: "Corrected", keep: "Kept", drop: "Dropped", skip: "Skipped" };

export function showRow(row, state) {
  const decided = row.state !== "open";
  by("heading").replaceChildren(`Row ${row.place}`,
    ...(decided ? [" ", make("span", { class: `badge ${row.state}` },
      row.state === "correct" ? `Corrected to ${row.value}` : WORDS[row.state])] : []));
  by("card").classList.toggle("same", row.same);
  by("given").textContent = row.given;
  by("suggested").textContent = row.suggested;
  by("suggestname").textContent = row.same ? "Suggested: keep" : "Suggested";
  const chance = row.chance === null ? "" : `${percent(row.chance)} likely`;
  const interval = row.interval ? `90\u00a0% between ${row.interval[0]} and ${row.interval[1]}` : "";
  by("chance").textContent = [chance, interval].filter(Boolean).join(", ");
  by("why").textContent = `${sentence(row.why)} Probability that the given value is wrong: ${percent(row.wrong)}.`;
  voices(row);
  by("take").firstChild.textContent = row.same ? "Keep as given " : "Take suggestion ";
  by("undo").disabled = !state.undo;
  by("back").disabled = row.previous === null;
  by("on").disabled = row.next === null;
  picture(by("picture"), row.image, row.row, `Row ${row.place}`);
  columns(row);
  near(row, state);
}

// All labels of the row, where several people gave some, the best person first.
function voices(row) {
  by("voices").hidden = !row.voices.length;
  if (!row.voices.length) { by("voices").replaceChildren(); return; }
  const head = ["labelled by", "label", "quality", "95\u00a0% between", ""].map(name => make("th", { scope: "col" }, name));
  const lines = row.voices.map(one => make("tr", { class: one.label === row.given ? "" : "differs" },
    make("th", { scope: "row" }, ...breakable(one.who)),
    make("td", {}, make("b", {}, one.label)),
    make("td", { class: "number" }, percent(one.quality)),
    make("td", { class: "number quiet" }, `${percent(one.low)} and ${percent(one.high)}`),
    make("td", { class: "quiet" }, one.about)));
  by("voices").replaceChildren(make("table", { "aria-label": "Labels of this row" },
    make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines)));
}

function sentence(text) {
  if (!text) return "";
  const first = text[0].toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

function picture(image, there, row, alt) {
  image.hidden = !there;
  if (!there) { image.removeAttribute("src"); return; }
  image.alt = alt;
  const wanted = new URL(`image/${row}`, location.href).href;
  if (image.src !== wanted) image.src = wanted;
  image.onerror = () => { image.hidden = true; };
  image.onload = () => image.classList.toggle("pixels", image.naturalWidth < 64);
}

function far(value) {
  if (value === null) return "";
  const size = Math.abs(value) >= 99 ? "far off" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)} sd`;
  return size;
}

// A name may be broken after its underscores.
function breakable(name) {
  return name.split(/(?<=_)/).flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part]));
}

const MOST = 40, BESIDE_IMAGE = 8;
let all = false;

function columns(row) {
  const two = row.near.length > 1;
  const head = make("tr", {}, make("th", { scope: "col" }, "column"), make("th", { scope: "col" }, "value"),
    make("th", { scope: "col", class: "number" }, `from ${row.near[0].value}`),
    ...(two ? [make("th", { scope: "col", class: "number" }, `from ${row.near[1].value}`)] : []));
  const shown = all ? row.columns : row.columns.slice(0, row.image ? BESIDE_IMAGE : MOST);
  const lines = shown.map(column => make("tr", { class: column.unusual ? "unusual" : "" },
    make("th", { scope: "row" }, ...breakable(column.name)),
    make("td", {}, make("div", { class: "text" }, column.value || "–",
      column.unusual ? make("span", { class: "badge" }, "unusual") : null)),
    make("td", { class: "number" }, far(column.given)),
    ...(two ? [make("td", { class: "number" }, far(column.suggested))] : [])));
  by("columns").replaceChildren(make("thead", {}, head), make("tbody", {}, ...lines));
  if (shown.length < row.columns.length) by("columns").append(make("tfoot", {}, make("tr", {},
    make("td", { colspan: 4 }, make("button", { onclick: () => { all = true; columns(row); } },
      `${row.columns.length - shown.length} more columns`)))));
}

function near(row, state) {
  by("near").replaceChildren(...row.near.map(group => {
    const title = make("h4", {}, state.task === "number" ? `${state.target} near ` : "like ", make("b", {}, group.value));
    if (!group.rows.length) return make("div", { class: "group" }, title, make("p", { class: "quiet" }, "No trusted rows."));
    const images = group.rows.some(one => one.image);
    const head = make("tr", {}, make("th", { scope: "col" }, "row"), make("th", { scope: "col" }, "target"),
      ...(images ? [make("th", { scope: "col" }, "image")] : []),
      ...(images ? [] : group.columns.map(name => make("th", { scope: "col" }, ...breakable(name)))));
    const lines = group.rows.map(one => {
      const image = make("img", { class: "small" });
      if (images) picture(image, one.image, one.row, `Row ${one.place}`);
      return make("tr", {}, make("td", {}, String(one.place)), make("td", {}, make("b", {}, one.value)),
        ...(images ? [make("td", {}, image)] : []),
        ...(images ? [] : one.cells.map(cell => make("td", {}, make("div", { class: "text short" }, cell)))));
    });
    return make("div", { class: "group" }, title,
      make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...lines))));
  }));
}
