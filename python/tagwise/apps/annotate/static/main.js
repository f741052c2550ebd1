// Main script of the page. Keys and buttons send actions, and the server returns the complete new state.
import { byId, get, make, post, upload, visible } from "./dom.js";
import { Editor, KEYS } from "./editor.js";
import * as panels from "./panels.js";

let state = null;
let busy = false;
const editor = new Editor(() => {});

const say = (text, bad = false) => {
  const box = byId("status");
  box.textContent = visible(text);
  box.classList.toggle("bad", bad);
};

function show(next, said = "") {
  state = next;
  const { settings, sentence } = state;
  editor.show(sentence, settings.labels, settings.kind);
  labelBar();
  panels.counts(state);
  panels.queue(state.queue, sentence?.id, choose);
  panels.curve(state.curve, state.dev);
  panels.files(state);
  strategies();
  byId("undo").disabled = !state.undo;
  byId("redo").disabled = !state.redo;
  byId("accept").disabled = byId("skip").disabled = !sentence;
  byId("place").textContent = sentence ? `Sentence ${sentence.id + 1}` : "Done";
  byId("origin").textContent = sentence ? visible(sentence.document) + (sentence.accepted ? ", accepted" : "") : "";
  byId("hint").hidden = !settings.labels.length;
  if (said || sentence) {
    const n = editor.spans.length;
    const what = sentence ? `${n ? `${n} ${n === 1 ? "label" : "labels"} proposed` : "nothing proposed"}` : "";
    say([said, state.failed ? `Training failed: ${state.failed}` : what].filter(Boolean).join(" "), Boolean(state.failed));
  }
}

function labelBar() {
  const { labels } = state.settings;
  byId("labels").replaceChildren(
    ...labels.map((label, i) => {
      const button = make("button", { class: `label c${i % 12}`, "aria-keyshortcuts": KEYS[i] ?? null, onclick: () => put(label) });
      if (KEYS[i]) button.append(make("kbd", { text: KEYS[i] }));
      button.append(make("span", { text: label }));
      return button;
    }),
  );
  if (!labels.length) byId("labels").append(make("p", { class: "quiet", text: "No labels yet: type the first one below." }));
}

function strategies() {
  const box = byId("strategy");
  if (!box.children.length) {
    box.append(...state.strategies.map((one) => make("option", { value: one.name, text: one.title })));
  }
  box.value = state.settings.strategy;
}

async function deed(work, said = "") {
  if (busy) return;
  busy = true;
  try {
    const found = await work();
    show(found, typeof said === "function" ? said(found) : said);
    byId("sentence").focus({ preventScroll: true });
  } catch (error) {
    say(error.message, true);
  } finally {
    busy = false;
  }
}

function put(label) {
  editor.put(label);
  byId("sentence").focus({ preventScroll: true });
}

const plain = () => editor.spans.map(({ begin, end, label }) => ({ begin, end, label }));
// Performance marks of a correction: asked (request sent), answered (response received), shown (page updated), frame (next
// frame begins), painted (frame drawn). Each correction clears the previous marks, so that they do not accumulate.
const MARKS = ["asked", "answered", "shown", "frame", "painted"];
const mark = (name) => performance.mark(name);
function painted() {
  mark("shown");
  requestAnimationFrame(() => {
    mark("frame");
    setTimeout(() => {
      mark("painted");
      document.documentElement.dataset.took = String(performance.measure("correction", "asked", "painted").duration);
    });
  });
}
const accept = () => {
  if (!state?.sentence || busy) return;
  MARKS.forEach((name) => performance.clearMarks(name));
  performance.clearMeasures("correction");
  mark("asked");
  deed(
    async () => {
      const found = await post("api/accept", { id: state.sentence.id, spans: plain() });
      mark("answered");
      return found;
    },
    (found) => {
      queueMicrotask(painted); // runs after `show`, which is called in the current task
      return `Learned in ${found.milliseconds.learning.toFixed(1)} ms.`;
    },
  );
};
const skip = () => state?.sentence && deed(() => post("api/skip", { id: state.sentence.id }), "Skipped.");
const undo = () => state?.undo && deed(() => post("api/undo"), "Undone.");
const redo = () => state?.redo && deed(() => post("api/redo"), "Done again.");
const choose = (id) => deed(() => get(`api/state?focus=${id}`));

async function askWhy() {
  if (!state?.sentence) return;
  tab("why");
  try {
    const found = await get(`api/why?id=${state.sentence.id}&token=${editor.head}`);
    panels.why({ ...found, tokens: state.sentence.tokens }, state.settings.labels);
  } catch (error) {
    byId("panel-why").replaceChildren(make("p", { class: "quiet", text: error.message }));
  }
}

// --- panels ---------------------------------------------------------------------------------------------------

const TABS = ["why", "mistakes", "compare", "files"];
function tab(name, focus = false) {
  for (const one of TABS) {
    const chosen = one === name;
    const button = byId(`tab-${one}`);
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    byId(`panel-${one}`).hidden = !chosen;
    if (chosen && focus) button.focus();
  }
}
for (const [i, name] of TABS.entries()) {
  const button = byId(`tab-${name}`);
  button.addEventListener("click", () => tab(name));
  button.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) tab(TABS[(i + step + TABS.length) % TABS.length], true);
  });
}

async function asked(button, work) {
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    say(error.message, true);
  } finally {
    button.disabled = false;
  }
}

byId("findmistakes").addEventListener("click", (event) =>
  asked(event.target, async () => panels.mistakes((await post("api/mistakes")).suspects, state.settings.labels, choose)));
byId("begincompare").addEventListener("click", (event) =>
  asked(event.target, async () => {
    const found = await post("api/compare");
    panels.comparison({ kind: "start", done: 0, total: found.learners.length, cell: "begins", rows: [] });
  }));
byId("otherfile").addEventListener("change", (event) =>
  asked(event.target, async () => {
    const [file] = event.target.files;
    if (file) panels.agreement(await upload("api/agreement", file), state.settings.labels, choose);
    event.target.value = "";
  }));
byId("importfile").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) deed(() => upload(`api/import?name=${encodeURIComponent(file.name)}`, file), "Imported.");
  event.target.value = "";
});
byId("add").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = byId("newlabel").value.trim();
  if (!name) return;
  asked(event.submitter ?? byId("newlabel"), async () => {
    const mine = editor.spans;
    show(await post("api/label", { name }), `${name} added.`);
    editor.spans = mine;
    editor.render();
    byId("newlabel").value = "";
    byId("sentence").focus();
  });
});
byId("strategy").addEventListener("change", (event) =>
  deed(() => post("api/strategy", { strategy: event.target.value, search: byId("search").value }), "Order changed."));
byId("search").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  const search = event.target.value;
  deed(() => post("api/strategy", { strategy: search ? "search" : "margin", search }), search ? "Found first." : "");
});

for (const [id, work] of [["accept", accept], ["skip", skip], ["undo", undo], ["redo", redo], ["whybutton", askWhy],
  ["clear", () => editor.clear()], ["help", () => byId("keys").showModal()]]) byId(id).addEventListener("click", work);

// --- light and dark -------------------------------------------------------------------------------------------

const root = document.documentElement;
const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
try {
  const kept = localStorage.getItem("tagwise-theme");
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
} catch { /* local storage is not available */ }
byId("theme").addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try {
    localStorage.setItem("tagwise-theme", root.dataset.theme);
  } catch { /* local storage is not available */ }
});

// --- keys -----------------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || byId("keys").open) return;
  const typing = event.target.matches?.("input, select, textarea");
  if (event.key === "Escape") {
    byId("sentence").focus();
    return;
  }
  if (typing) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
    event.preventDefault();
    (event.shiftKey ? redo : undo)();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inTabs = event.target.matches?.("[role=tab]");
  const onControl = event.target.matches?.("button, a, label");
  const label = state?.settings.labels[KEYS.indexOf(event.key)];
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -8, ArrowDown: 8 }[event.key];
  if (label !== undefined) put(label);
  else if (step && !inTabs) editor.go(step, event.shiftKey);
  else if (event.key === "Home") editor.go(-1e6, event.shiftKey);
  else if (event.key === "End") editor.go(1e6, event.shiftKey);
  else if (event.key === "Enter" && !onControl) accept();
  else if (["Delete", "Backspace", "0"].includes(event.key)) editor.clear();
  else if (event.key === "u") undo();
  else if (event.key === "r") redo();
  else if (event.key === "s") skip();
  else if (event.key === "w") askWhy();
  else if (event.key === "n") byId("newlabel").focus();
  else if (event.key === "/") byId("search").focus();
  else if (event.key === "?") byId("keys").showModal();
  else return;
  event.preventDefault();
});

// --- events from the server --------------------------------------------------------------------------------------

async function refresh(id) {
  const found = await get(`api/state?focus=${id}`);
  if (state.sentence?.id !== id || editor.touched || busy) return;
  const { anchor, head } = editor;
  show(found);
  editor.anchor = anchor;
  editor.head = head;
  editor.paint();
}

function listen() {
  const source = new EventSource("api/events");
  source.addEventListener("ranked", (event) => {
    const found = JSON.parse(event.data);
    if (!state) return;
    state.queue = found.queue;
    state.counts.stale = found.stale;
    panels.queue(state.queue, state.sentence?.id, choose);
    panels.counts(state);
  });
  source.addEventListener("learned", (event) => {
    const found = JSON.parse(event.data);
    if (!state) return;
    state.curve = found.curve;
    panels.curve(state.curve, state.dev);
    // The model was updated: refresh the proposals, unless the user is editing the sentence.
    if (state.sentence && !state.sentence.spans && !editor.touched && !busy && editor.anchor === editor.head) refresh(state.sentence.id);
  });
  source.addEventListener("compare", (event) => panels.comparison(JSON.parse(event.data)));
}

await deed(() => get("api/state"));
listen();
document.documentElement.dataset.ready = "yes";
