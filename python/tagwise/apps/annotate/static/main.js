// Main script of the page: connects the modules, the buttons, the theme, and the events of the server.
import * as actions from "./actions.js";
import { byId, get } from "./dom.js";
import { editor } from "./editor.js";
import * as end from "./end.js";
import * as guidelines from "./guidelines.js";
import * as keys from "./keys.js";
import * as labels from "./labels.js";
import * as lists from "./lists.js";
import * as panels from "./panels.js";
import * as pointer from "./pointer.js";
import { store } from "./store.js";

for (const [id, action] of [["accept", actions.accept], ["skip", actions.skip], ["flag", actions.flag], ["reject", actions.reject],
  ["undo", actions.undo], ["redo", actions.redo], ["previous", actions.previous], ["commentbutton", actions.comment],
  ["whybutton", panels.askWhy], ["clear", () => editor.clear()], ["guide", guidelines.toggle],
  ["help", () => byId("keys").showModal()]]) byId(id).addEventListener("click", action);
byId("commentform").addEventListener("submit", actions.saveComment);
pointer.listen();
keys.listen();
lists.listen(actions.choose);
labels.listen(actions.show);
panels.listen(actions);
end.listen(actions);

// --- the bar of actions, above which the page ends --------------------------------------------------------------

new ResizeObserver(() => document.documentElement.style.setProperty("--bar", `${byId("actions").offsetHeight}px`)).observe(byId("actions"));

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

// --- events from the server --------------------------------------------------------------------------------------

// Show the present sentence again, with the selection as it is.
async function refresh() {
  const { id } = store.state.sentence;
  const found = await get(`api/state?focus=${id}`).catch(() => null);
  if (!found || store.state.sentence?.id !== id || editor.touched || editor.live || store.busy) return;
  const { anchor, head } = editor;
  actions.show(found);
  editor.anchor = anchor;
  editor.head = head;
  editor.paint();
}

async function changed({ ids, version }) {
  const sentence = store.state?.sentence;
  if (!sentence || store.busy || !ids.includes(sentence.id) || version <= sentence.version) return;
  const found = await get(`api/state?focus=${sentence.id}`).catch(() => null);
  if (!found || store.busy || store.state.sentence?.id !== sentence.id || found.sentence.version <= store.state.sentence.version) return;
  if (editor.touched) actions.clash("This sentence was labelled in another tab.", editor.spans, found.sentence);
  else actions.show(found, "This sentence was just changed in another tab.");
}

function connected(on, why = "") {
  byId("offline").hidden = on;
  byId("offline").textContent = why;
}

function listen(again = false) {
  const source = new EventSource("api/events");
  const on = (kind, handle) => source.addEventListener(kind, (event) => store.state && handle(JSON.parse(event.data)));
  source.addEventListener("open", async () => {
    connected(true);
    if (!store.state) await start();
    else if (again && store.state.sentence) refresh();
    again = false;
  });
  source.addEventListener("error", async () => {
    again = true;
    const why = await get("api/state").then(() => "", (error) => (error.status === 401 ? "The server was started again with another address. Open the address that it printed." : "The server does not answer. Your edits are kept in this browser."));
    if (why) connected(false, why);
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000, true);
  });
  on("ranked", (found) => {
    // An action may have been answered before this event arrived: its counts and its queue are the newer ones.
    const older = found.counts.actions < store.state.counts.actions;
    const waiting = new Set(store.state.queue.map((one) => one.id));
    store.state.queue = older ? found.queue.filter((one) => waiting.has(one.id)) : found.queue;
    if (!older) store.state.counts = found.counts;
    lists.numbers();
    lists.render();
    actions.progress();
  });
  on("learned", (found) => {
    store.state.curve = found.curve;
    panels.curve(store.state.curve, store.state.dev);
    // The model was updated: refresh the proposals of a sentence that has neither labels nor edits.
    if (store.state.sentence && !store.state.sentence.spans && !editor.touched && !editor.live && !store.busy) refresh();
  });
  on("changed", changed);
  on("compare", panels.comparison);
}

// Show the first sentence. The page is ready for keys when this has succeeded.
async function start() {
  await actions.act(() => get("api/state"));
  if (!store.state) return;
  if (store.state.settings.labels.length === 1) {
    [store.active] = store.state.settings.labels;
    labels.bar();
  }
  document.documentElement.dataset.ready = "yes";
}

await start();
listen();
