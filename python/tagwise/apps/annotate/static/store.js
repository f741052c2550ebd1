// State that the modules of the page share: the last state of the server, and what is specific to this tab.
import { byId, make, visible } from "./dom.js";

export const store = {
  state: null, // last state of the server
  busy: false, // whether an action is in progress
  pending: null, // promise of the last action
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

// Return a function of a token: the space after it, which is empty between tokens that the text joins.
export function spaces({ joined }) {
  const places = new Set(joined);
  return (t) => (places.has(t) ? "" : " ");
}

// Return a read-only element with the tokens of a sentence and spans.
export function phrase(sentence, spans, marked = new Set()) {
  const { tokens } = sentence;
  const out = make("span", { class: "phrase", dir: "auto" });
  const space = spaces(sentence);
  let t = 0;
  const token = (i) => (marked.has(i) ? make("span", { class: "marked", text: tokens[i] }) : visible(tokens[i]));
  for (const [begin, end, label] of spans.filter(([, , y]) => y !== "O")) {
    while (t < begin) out.append(token(t), space(t++));
    const box = make("span", { class: `mini ${colour(label)}` });
    while (t < end) {
      box.append(token(t));
      if (++t < end) box.append(space(t - 1));
    }
    box.append(make("b", { text: label }));
    out.append(box, space(t - 1));
  }
  while (t < tokens.length) out.append(token(t), space(t++));
  return out;
}
