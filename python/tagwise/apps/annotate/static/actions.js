// Actions on sentences. The server answers each with the complete new state, which `show` draws.
import * as conflict from "./conflict.js";
import { byId, count, duration, get, make, post, visible } from "./dom.js";
import * as drafts from "./drafts.js";
import { editor } from "./editor.js";
import * as end from "./end.js";
import * as labels from "./labels.js";
import * as lists from "./lists.js";
import * as panels from "./panels.js";
import * as pointer from "./pointer.js";
import { say, store } from "./store.js";

const LISTED = { flag: "flagged", reject: "rejected" };

export function show(next, message = "") {
  store.state = next;
  const { sentence } = next;
  pointer.hide();
  conflict.hide();
  const outdated = editor.show(sentence);
  labels.bar();
  progress();
  lists.numbers();
  lists.render();
  panels.curve(next.curve, next.dev);
  panels.files(next);
  panels.strategies(next);
  byId("undo").disabled = !next.undo;
  byId("redo").disabled = !next.redo;
  byId("guide").hidden = !next.guidelines;
  byId("before").textContent = visible(sentence?.before ?? "");
  byId("after").textContent = visible(sentence?.after ?? "");
  byId("commentform").hidden = !sentence?.comment;
  byId("comment").value = sentence?.comment ?? "";
  byId("sentence").hidden = byId("before").hidden = byId("after").hidden = !sentence;
  end.toggle(!sentence);
  heading();
  if (sentence && store.visited.at(-1) !== sentence.id) store.visited.push(sentence.id);
  if (outdated) clash("You have an older draft of this sentence.", outdated.spans, sentence);
  if (next.failed) say(`Training failed: ${next.failed}`, true);
  else if (message) say(message);
}

// Show what the card is: a sentence with its document and state, or the summary.
export function heading() {
  const { sentence, settings } = store.state;
  const summary = !byId("end").hidden;
  byId("place").textContent = !sentence ? "All done" : summary ? "Summary" : `Sentence ${(sentence.id + 1).toLocaleString("en")}`;
  byId("origin").textContent = !sentence || summary ? ""
    : [visible(sentence.document), sentence.accepted && "done", sentence.edited && "edited", LISTED[sentence.mark], settings.kind === "tokens" && "one label per word"].filter(Boolean).join(" · ");
}

export function progress() {
  const { sentences, done, rejected, open, seconds } = store.state.counts;
  const all = sentences - rejected;
  const left = seconds === null || !open ? "" : ` · ${duration(seconds)} left`;
  byId("counts").replaceChildren(`${done.toLocaleString("en")} of ${all.toLocaleString("en")}`, make("span", { class: "left", text: left }));
  const bar = byId("progress");
  bar.setAttribute("aria-valuemax", String(Math.max(all, 1)));
  bar.setAttribute("aria-valuenow", String(done));
  bar.setAttribute("aria-valuetext", byId("counts").textContent);
  byId("bar").style.width = `${(100 * done) / Math.max(all, 1)}%`;
}

export function act(request, message = "") {
  if (store.busy) return Promise.resolve(false);
  store.busy = true;
  store.pending = perform(request, message);
  return store.pending;
}

async function perform(request, message) {
  try {
    const found = await request();
    show(found, typeof message === "function" ? message(found) : message);
    lists.reload();
    if (!byId("conflict").hidden) return true;
    byId("sentence").focus({ preventScroll: true });
    return true;
  } catch (error) {
    if (error.status === 409) clash("This sentence was labelled in another tab.", editor.spans, error.value.sentence);
    else say(error.message, true);
    return false;
  } finally {
    store.busy = false;
  }
}

// Show both versions of a sentence. Keeping mine makes it a draft of the present version, which can be accepted.
export function clash(title, mine, theirs) {
  conflict.show(title, mine, theirs,
    () => {
      drafts.save(theirs.id, theirs.version, mine);
      choose(theirs.id);
    },
    () => {
      drafts.drop(theirs.id);
      choose(theirs.id);
    });
}

const then = () => {
  store.walk = store.walk.filter((id) => id !== store.state.sentence?.id);
  return store.walk.length ? { then: store.walk[0] } : {};
};
const saved = (found) => {
  const { done, sentences, rejected, open, seconds } = found.counts;
  const left = seconds === null || !open ? "" : ` · ${duration(seconds)} left`;
  return `Saved · ${done.toLocaleString("en")} of ${(sentences - rejected).toLocaleString("en")}${left}`;
};

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

export function accept() {
  if (!store.state?.sentence || store.busy || byId("accept").disabled || !byId("conflict").hidden) return;
  MARKS.forEach((name) => performance.clearMarks(name));
  performance.clearMeasures("correction");
  mark("asked");
  const { id, version } = store.state.sentence;
  act(
    async () => {
      const found = await post("api/accept", { id, version, spans: editor.plain, ...then() });
      mark("answered");
      drafts.drop(id);
      return found;
    },
    (found) => {
      queueMicrotask(painted); // runs after `show`, which is called in the current task
      return saved(found);
    },
  );
}

function markSentence(mark, message) {
  if (!store.state?.sentence || byId("skip").disabled) return;
  const { id } = store.state.sentence;
  act(() => post(`api/${mark}`, { id, ...then() }), message);
}

export const skip = () => markSentence("skip", "Skipped for now.");
export const flag = () => markSentence("flag", "Flagged.");
export const reject = () => markSentence("reject", "Rejected: it is left out of exports.");
export const undo = () => store.state?.undo && act(() => post("api/undo"), "Taken back.");
export const redo = () => store.state?.redo && act(() => post("api/redo"), "Done again.");
export const choose = (id, walk = []) => {
  store.walk = walk;
  say("");
  return act(() => get(`api/state?focus=${id}`));
};

// Show the sentence that was shown before this one, or the last one that was labelled.
export async function previous() {
  const now = store.visited.pop();
  let id = store.visited.pop();
  if (id === undefined) id = (await get("api/list?tab=done")).rows.find((one) => one.id !== now)?.id;
  if (id === undefined) {
    if (now !== undefined) store.visited.push(now);
    say("There is no previous sentence.");
  } else await choose(id);
}

export async function comment() {
  await store.pending; // the comment is on the sentence that an action in progress shows next
  if (!store.state?.sentence) return;
  byId("commentform").hidden = false;
  byId("comment").focus();
}

export async function saveComment(event) {
  event.preventDefault();
  const { id } = store.state.sentence;
  const text = byId("comment").value.trim();
  const draft = editor.touched ? editor.spans : null;
  await act(async () => {
    const found = await post("api/comment", { id, text });
    if (draft) drafts.save(id, found.sentence.version, draft);
    return found;
  }, text ? "Comment saved." : "Comment removed.");
}

export async function walkThrough(ids, message) {
  if (!ids.length) return say("There is nothing to check.");
  await choose(ids[0], ids.slice(1));
  say(`${message}: ${count(ids.length, "sentence")}.`);
}
