// Labels: the bar below the sentence, the active label, and the dialog that manages them.
import { byId, count, get, make, post } from "./dom.js";
import * as drafts from "./drafts.js";
import { editor } from "./editor.js";
import { hide } from "./pointer.js";
import { colour, freeKeys, keysOfLabels, labels, say, store } from "./store.js";

const COLOURS = 24;
let show = () => {}; // set by `listen`: shows a new state of the server
let counts = {}; // number of spans by label

// --- the bar -------------------------------------------------------------------------------------------------

let drawn = ""; // labels on the page

export function bar() {
  if (!labels().includes(store.active)) store.active = null;
  const { labels: names, details } = store.state.settings;
  const content = JSON.stringify([names, details, store.active]);
  if (content === drawn) return;
  drawn = content;
  const keys = new Map([...keysOfLabels()].map(([key, label]) => [label, key]));
  byId("labels").replaceChildren(
    ...labels().map((label) => {
      const button = make("button", {
        class: `label ${colour(label)}`, "aria-keyshortcuts": keys.get(label) ?? null, "aria-pressed": String(label === store.active),
        title: store.state.settings.details[label].description ?? null, onclick: () => use(label),
      });
      if (keys.has(label)) button.append(make("kbd", { text: keys.get(label) }));
      button.append(make("span", { text: label }));
      return button;
    }),
  );
  if (!labels().length) byId("labels").append(make("button", { text: "Add the first label", onclick: open }));
  hint();
}

function hint() {
  byId("hint").textContent = !labels().length ? ""
    : store.active ? `${store.active} is active: click a word, double-click a name, or drag over several words.`
      : "Drag over words to label them, or choose a label first.";
}

// Label the selection, or make the label active (again: inactive).
export function use(label) {
  if (editor.live || !editor.pointed && document.activeElement === editor.box) editor.put(label);
  else {
    store.active = store.active === label ? null : label;
    bar();
    say(store.active ? `${label} is active.` : "No label is active.");
  }
  hide();
  editor.box.focus({ preventScroll: true });
}

export function deactivate() {
  if (!store.active) return;
  store.active = null;
  bar();
}

// --- the dialog ------------------------------------------------------------------------------------------------

export async function open() {
  byId("labelstatus").textContent = "";
  fill();
  byId("labeldialog").showModal();
  byId("newlabel").focus();
  counts = await get("api/labels").catch(() => ({}));
  fill();
}

async function change(request, focus, before = () => {}) {
  byId("labelstatus").textContent = "";
  try {
    const found = await request({ ...(store.state.sentence ? { focus: store.state.sentence.id } : {}) });
    counts = await get("api/labels").catch(() => counts);
    before(); // from here on without waiting, since text typed into the list after the page has changed must stay
    show(found);
    fill();
    if (focus) byId("labellist").querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  } catch (error) {
    byId("labelstatus").textContent = error.message;
    fill();
  }
}

const changed = (label, value, focus, before) => change((at) => post("api/label/change", { label, ...value, ...at }), focus, before);

function remove(label, button) {
  const n = counts[label] ?? 0;
  if (n && button.dataset.sure !== "yes") {
    button.dataset.sure = "yes";
    button.textContent = `Delete ${count(n, "span")}?`;
    return;
  }
  change((at) => post("api/label/delete", { label, ...at }));
}

// Rename a label when enter is pressed or the field is left. Only a second enter merges it with another label.
async function rename(label, field, entered) {
  const name = field.value.trim();
  if (!name || name === label) {
    field.value = label;
    return;
  }
  if (field.dataset.sent === name) return; // removing the field from the page leaves it too
  if (labels().includes(name) && !(entered && field.dataset.sure === name)) {
    field.dataset.sure = name;
    byId("labelstatus").textContent = `${name} exists. Press enter again to merge ${label} into it.`;
    return;
  }
  field.dataset.sent = name;
  await changed(label, { name }, null, () => drafts.rename(label, name));
}

function fill() {
  const automatic = new Map([...keysOfLabels()].map(([key, label]) => [label, key]));
  const free = freeKeys();
  byId("labellist").replaceChildren(...labels().map((label, place) => {
    const details = store.state.settings.details[label];
    const name = make("input", {
      class: "name", maxlength: "60", "aria-label": `Name of ${label}`,
      onkeydown: (event) => event.key === "Enter" && (event.preventDefault(), rename(label, event.target, true)),
      onchange: (event) => rename(label, event.target, false),
    });
    name.value = label;
    const picker = make("select", { class: `colour ${colour(label)}`, "aria-label": `Colour of ${label}`, onchange: (event) => changed(label, { colour: Number(event.target.value) }) },
      ...Array.from({ length: COLOURS }, (_, k) => make("option", { value: String(k), class: `c${k}`, text: `Colour ${k + 1}` })));
    picker.value = String(details.colour);
    const key = make("select", { class: "key", "aria-label": `Key of ${label}`, onchange: (event) => changed(label, { key: event.target.value }) },
      make("option", { value: "", text: !details.key && automatic.has(label) ? `key ${automatic.get(label)}` : "any key" }),
      ...[...(details.key ? [details.key] : []), ...free].map((one) => make("option", { value: one, text: `key ${one}` })));
    key.value = details.key ?? "";
    const description = make("input", {
      class: "description", maxlength: "2000", placeholder: "Description", "aria-label": `Description of ${label}`,
      onchange: (event) => changed(label, { description: event.target.value }),
    });
    description.value = details.description ?? "";
    const move = (to, text, what) => make("button", {
      class: "small", text, "aria-label": `Move ${label} ${what}`, "data-focus": `${label} ${what}`, disabled: to < 0 || to >= labels().length,
      onclick: () => changed(label, { place: to }, `${label} ${what}`),
    });
    return make("li", {}, name, picker, key, description,
      make("span", { class: "quiet used", text: count(counts[label] ?? 0, "span") }),
      move(place - 1, "↑", "up"), move(place + 1, "↓", "down"),
      make("button", { class: "small", text: "Delete", "aria-label": `Delete ${label}`, onclick: (event) => remove(label, event.target) }));
  }));
}

export function listen(showState) {
  show = showState;
  byId("manage").addEventListener("click", open);
  byId("newlabel").addEventListener("input", () => (byId("labelstatus").textContent = ""));
  byId("add").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = byId("newlabel").value.trim();
    if (!name) return;
    change(async (at) => {
      const found = await post("api/label", { name, ...at });
      byId("newlabel").value = "";
      return found;
    });
  });
  byId("labeldialog").addEventListener("close", () => editor.box.focus({ preventScroll: true }));
}
