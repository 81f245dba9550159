// The review: which row is shown, what is decided, and what other tabs have done meanwhile.
import { by, get, percent, post } from "./api.js";
import { chart } from "./chart.js";
import { Combo } from "./combo.js";
import { List } from "./list.js";
import { showRow } from "./row.js";

// ahead: whether the reader has gone to another row than the most suspicious, and goes on from there
let state = null, row = null, busy = false, turn = 0, ahead = false;
const list = new List(number => move(number));
const combo = new Combo(value => decide("correct", value));

// What is said to everyone, and to those who listen.
function say(text, bad = false) {
  by("live").textContent = text;
  const toast = by("toast");
  toast.textContent = text;
  toast.className = bad ? "bad" : "";
  toast.hidden = false;
  clearTimeout(say.wait);
  say.wait = setTimeout(() => { toast.hidden = true; }, bad ? 8000 : 2500);
}

function about(found) {
  state = found;
  document.title = `Review of ${state.data}`;
  by("title").textContent = `${state.data}: ${state.target}`;
  by("sentence").textContent = state.sentence;
  by("fitting").hidden = !state.fitting;
  by("refit").disabled = state.fitting;
  const { correct, keep, drop, skip } = state.counts;
  const changed = state.missing ? ` ${state.missing} earlier decisions are about rows that have changed since; they are not used.` : "";
  by("numbers").textContent = `${state.looked} of ${state.rows.toLocaleString("en")} rows looked at: ${correct} corrected, `
    + `${keep} kept, ${drop} dropped${skip ? `, ${skip} skipped` : ""}. About ${percent(state.share)} of all rows are or were wrong; `
    + `about ${Math.round(state.remaining)} wrong rows remain.${changed}`;
  chart(by("chart"), state);
}

async function open(number, focus = true) {
  const mine = ++turn;
  by("done").hidden = number !== null;
  by("work").hidden = number === null;
  by(number === null ? "done" : "beside").append(by("progress"));
  if (number === null) {
    row = null;
    by("donehead").focus();
    list.fresh().catch(() => {});
    return;
  }
  const found = await get(`api/row/${number}`);
  if (mine !== turn) return;
  row = found;
  showRow(row, state);
  combo.about(state, row);
  if (focus) { by("heading").focus({ preventScroll: true }); scrollTo({ top: 0 }); }
  document.body.classList.remove("listed");
  by("listed").setAttribute("aria-expanded", "false");
  document.body.dataset.row = number;
  list.fresh(number).catch(() => {});
}

// One thing at a time: a key that is held down must not decide about rows that nobody has seen.
async function alone(work) {
  if (busy) return;
  busy = true;
  by("row").setAttribute("aria-busy", "true");
  try { await work(); } catch (error) { say(error.message, true); } finally {
    busy = false;
    by("row").setAttribute("aria-busy", "false");
  }
}

function decide(action, value = null) {
  return alone(async () => {
    if (!row) return;
    const found = await post("api/decide", { row: row.row, action, ahead, ...(value === null ? {} : { value }) });
    const { made } = found;
    combo.close();
    about(found.state);
    const words = { correct: `corrected to ${made.value}`, keep: "kept", drop: "dropped", skip: "skipped" };
    say(`Row ${made.row} ${words[made.action]}.`);
    await open(found.next);
  });
}

function undo() {
  return alone(async () => {
    const found = await post("api/undo");
    about(found.state);
    if (found.row === null) { say("Nothing is left to undo."); return; }
    ahead = false;
    await open(found.row);
    say(`Row ${row.place} is open again.`);
  });
}

const take = () => row && (row.same ? decide("keep") : decide("correct", row.suggested));
const move = number => alone(async () => {
  if (number === null || number === undefined) return;
  ahead = number !== state.first;
  await open(number);
});
const refit = () => alone(async () => { about((await post("api/refit")).state); });

function write() {
  return alone(async () => {
    const found = await post("api/export");
    by("files").replaceChildren(...found.files.map(name => Object.assign(document.createElement("li"), { textContent: name })));
    by("summary").textContent = found.summary;
    by("written").showModal();
  });
}

function help() { by("help").open ? by("help").close() : by("help").showModal(); }

const KEYS = {
  k: () => decide("keep"), d: () => decide("drop"), s: () => decide("skip"), z: undo, r: refit, e: write,
  "?": help, "/": () => combo.open(), ArrowLeft: () => move(row?.previous), ArrowUp: () => move(row?.previous),
  ArrowRight: () => move(row?.next), ArrowDown: () => move(row?.next),
};

addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !state) return;
  if (document.querySelector("dialog[open]")) {
    if (event.key === "?") { help(); event.preventDefault(); }
    return;
  }
  const place = event.target, typing = place.matches("input, select, textarea");
  if (event.repeat && !event.key.startsWith("Arrow")) return;
  if (typing) { if (event.key === "Escape") by("heading").focus(); return; }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "Enter") {
    if (place.matches("button, a, summary")) return;
    take();
  } else if (KEYS[key]) KEYS[key]();
  else if (row && state.task === "number" && /^[-+.,\d]$/.test(key)) combo.open(event.key);
  else if (row && /^\d$/.test(key)) {
    const value = combo.digit(key);
    if (value !== undefined) decide("correct", value);
  } else if (row && event.key.length === 1 && event.key !== " ") combo.open(event.key);
  else return;
  event.preventDefault();
});

for (const [id, act] of Object.entries({ take, keep: KEYS.k, drop: KEYS.d, skip: KEYS.s, undo, refit, export: write, keys: help,
  back: KEYS.ArrowLeft, on: KEYS.ArrowRight })) by(id).addEventListener("click", () => act());
by("listed").addEventListener("click", () => {
  const shown = document.body.classList.toggle("listed");
  by("listed").setAttribute("aria-expanded", String(shown));
  if (shown) list.fresh(row?.row ?? null);
});

// Other tabs decide too, and the model learns: what is shown follows.
async function follow() {
  try {
    const found = busy ? null : await get("api/state", { since: state.version });
    document.body.classList.remove("lost");
    if (found && !busy) {
      const learned = state.fitting && !found.fitting, failed = found.error && found.error !== state.error;
      about(found);
      if (learned) ahead = false;
      if (failed) say(`Learning failed: ${found.error}`, true);
      else if (learned) say("Learned from your decisions; what is left is ranked anew.");
      if (row === null && found.first !== null) await open(found.first, false);
      else if (row) await open(row.row, false);
    }
  } catch (error) {
    if (!document.body.classList.contains("lost")) say("The server does not answer. Start `mtbayes review` again: nothing is lost.", true);
    document.body.classList.add("lost");
  }
  setTimeout(follow, document.hidden ? 4000 : 1000);
}

about(await get("api/state"));
await open(state.first);
document.body.dataset.ready = "yes";
setTimeout(follow, 1000);
