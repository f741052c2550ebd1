// State that the modules of the page share: the last state of the server, and what is specific to this tab.
import { byId, make, visible } from "./dom.js";

export const store = {
  state: null, // last state of the server
  busy: false, // whether an action is in progress
  active: null, // label that a selection gets at once
  walk: [], // sentences to show next, before those of the queue
  visited: [], // sentences shown in this tab, the last one is the current one
};

export const labels = () => store.state?.settings.labels ?? [];

// CSS class of the colour of a label.
export const colour = (label) => `c${store.state?.settings.details[label]?.colour ?? 9}`;

// Keys of labels in their order. Letters of commands are left out.
const KEYS = [..."123456789abdehijkmoqtvyz"];

// Map of keys to labels: chosen keys first, the others in order.
export function keysOfLabels() {
  const details = store.state?.settings.details ?? {};
  const found = new Map();
  for (const label of labels()) if (details[label]?.key) found.set(details[label].key, label);
  const free = KEYS.filter((key) => !found.has(key));
  for (const label of labels()) if (!details[label]?.key && free.length) found.set(free.shift(), label);
  return found;
}

export const freeKeys = () => KEYS.filter((key) => !Object.values(store.state.settings.details).some((one) => one.key === key));

export function say(text, bad = false) {
  const box = byId("status");
  box.textContent = visible(text);
  box.classList.toggle("bad", bad);
}

// Return a read-only element with tokens and spans.
export function phrase(tokens, spans, marked = new Set()) {
  const out = make("span", { class: "phrase", dir: "auto" });
  let t = 0;
  const token = (i) => (marked.has(i) ? make("span", { class: "marked", text: tokens[i] }) : visible(tokens[i]));
  for (const [begin, end, label] of spans.filter(([, , y]) => y !== "O")) {
    while (t < begin) out.append(token(t++), " ");
    const box = make("span", { class: `mini ${colour(label)}` });
    while (t < end) {
      box.append(token(t++));
      if (t < end) box.append(" ");
    }
    box.append(make("b", { text: label }));
    out.append(box, " ");
  }
  while (t < tokens.length) out.append(token(t++), " ");
  return out;
}
