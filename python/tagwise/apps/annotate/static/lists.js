// Lists of sentences: to do, done, skipped, flagged, and search over all of them.
import { byId, count, get, make } from "./dom.js";
import { phrase, say, store } from "./store.js";

const TABS = ["todo", "done", "skipped", "flagged"];
const STATES = { done: "done", skipped: "skipped", flagged: "flagged", rejected: "rejected" };
let tab = "todo";
let search = "";
let rows = [];
let total = 0;
let drawn = ""; // content of the list on the page
let choose = () => {}; // set by `listen`: shows a sentence

const current = () => store.state?.sentence?.id;
const isQueue = () => tab === "todo" && !search;

function row(one) {
  const marks = [search && STATES[one.state], one.state === "rejected" && !search && "rejected", one.edited && "edited"].filter(Boolean);
  const button = make("button", {
    class: one.id === current() ? "here" : "", "aria-current": one.id === current() ? "true" : null, dir: "auto",
    onclick: () => choose(one.id, walkAfter(one.id)),
  });
  const text = one.tokens.length ? phrase(one, one.spans) : "(empty)";
  if (one.more) text.append("…");
  button.append(text);
  for (const mark of marks) button.append(make("small", { class: `mark ${mark}`, text: mark }));
  if (one.comment) button.append(make("span", { class: "note", text: one.comment }));
  return make("li", {}, button);
}

// Sentences to show after this one: the rest of a list, but not of the queue, which is sorted again after each sentence.
function walkAfter(id) {
  if (isQueue() || tab === "done" && !search) return [];
  const places = rows.map((one) => one.id);
  return places.slice(places.indexOf(id) + 1);
}

// Draw the list, unless it is on the page already.
export function render() {
  if (isQueue()) {
    rows = store.state.queue;
    total = rows.length;
  }
  const content = JSON.stringify([rows, search, tab, current(), store.state.settings.details]);
  if (content !== drawn) byId("rows").replaceChildren(...rows.map(row));
  drawn = content;
  byId("listtabs").classList.toggle("searching", search !== "");
  byId("morerows").hidden = rows.length >= total;
  byId("order").hidden = !isQueue();
  const found = byId("found");
  found.hidden = !search && rows.length > 0;
  found.textContent = search
    ? total ? `${count(total, "sentence")} found.` : `Nothing found for “${search}”.`
    : { todo: "Nothing left to do.", done: "Nothing is labelled yet.", skipped: "Nothing is skipped.", flagged: "Nothing is flagged." }[tab];
}

export function numbers() {
  const { open, done, skipped, flagged } = store.state.counts;
  for (const [name, n] of Object.entries({ todo: open - skipped, done, skipped, flagged })) byId(`list-${name}`).querySelector("b").textContent = n.toLocaleString("en");
}

// Load the list again after a change. The queue comes with every state.
export const reload = () => isQueue() || load();

// Load the list from the server, all of it or the part after `offset`.
async function load(offset = 0) {
  if (isQueue()) return render();
  const [where, what] = [tab, search];
  const query = new URLSearchParams({ tab: search ? "all" : tab, search, offset: String(offset) });
  try {
    const found = await get(`api/list?${query}`);
    if (where !== tab || what !== search) return;
    rows = offset ? [...rows, ...found.rows] : found.rows;
    total = found.total;
    render();
  } catch (error) {
    say(error.message, true);
  }
}

function open(name, focus = false) {
  tab = name;
  search = byId("search").value = "";
  for (const one of TABS) {
    const button = byId(`list-${one}`);
    button.setAttribute("aria-selected", String(one === name));
    button.tabIndex = one === name ? 0 : -1;
    if (one === name && focus) button.focus();
  }
  byId("list").setAttribute("aria-labelledby", `list-${name}`);
  return load();
}

async function find(first) {
  search = byId("search").value.trim();
  await load();
  if (first && search && rows.length) choose(rows[0].id, walkAfter(rows[0].id));
}

export function listen(chooseSentence) {
  choose = chooseSentence;
  for (const [i, name] of TABS.entries()) {
    const button = byId(`list-${name}`);
    button.addEventListener("click", () => open(name));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      open(TABS[(i + step + TABS.length) % TABS.length], true);
    });
  }
  let timer = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, 250, false);
  });
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      find(true);
    } else if (event.key === "Escape") open(tab);
  });
  byId("morerows").addEventListener("click", () => load(rows.length));
}
