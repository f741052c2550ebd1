// Drafts: edited labels of sentences that are not accepted yet, kept in the browser by project and sentence.
import { store } from "./store.js";

const name = (id) => `tagwise-draft:${store.state.project}:${id}`;

// Local storage may be unavailable or full. The page then works without drafts.
function safely(action) {
  try {
    return action();
  } catch {
    return null;
  }
}

export const save = (id, version, spans) =>
  safely(() => localStorage.setItem(name(id), JSON.stringify({ version, spans })));

export const drop = (id) => safely(() => localStorage.removeItem(name(id)));

// Return the draft of a sentence if its spans fit the sentence and the labels of the project, or null.
export function load(sentence) {
  const found = safely(() => JSON.parse(localStorage.getItem(name(sentence.id))));
  const fits = Array.isArray(found?.spans) && found.spans.every((one) =>
    one.begin >= 0 && one.begin < one.end && one.end <= sentence.tokens.length && store.state.settings.labels.includes(one.label));
  return fits ? found : null;
}

// Rename a label in all drafts of the project.
export const rename = (old, label) => safely(() => {
  for (const key of Object.keys(localStorage).filter((one) => one.startsWith(name("")))) {
    const found = JSON.parse(localStorage.getItem(key));
    const spans = found.spans.map((one) => (one.label === old ? { ...one, label } : one));
    localStorage.setItem(key, JSON.stringify({ ...found, spans }));
  }
});
