// The pointer on the sentence: dragging, clicking and double-clicking select words, and a popover offers labels.
import { byId, make } from "./dom.js";
import { editor } from "./editor.js";
import { colour, keysOfLabels, labels, store } from "./store.js";

let start = null; // token at which a drag began
let dragged = false;
let last = { time: 0 }; // last click: token, time and place

const DOUBLE = 400; // milliseconds between the clicks of a double click, and pixels
const NEAR = 8;

const tokenAt = (event) => {
  const found = document.elementFromPoint(event.clientX, event.clientY)?.closest?.("[data-t]");
  return found && editor.box.contains(found) ? Number(found.dataset.t) : null;
};

function spanOf(event, t) {
  const chip = event.target.closest?.("[data-span]");
  if (chip) return editor.spans[Number(chip.dataset.span)];
  return t === null ? undefined : editor.spanAt(t);
}

// Return the bounds of the run of capitalized words around a token, or of the token alone.
function capitalizedRun(t) {
  const { tokens } = editor.sentence;
  const capital = (i) => /^\p{Lu}/u.test(tokens[i] ?? "");
  let [begin, end] = [t, t + 1];
  if (capital(t)) {
    while (begin > 0 && capital(begin - 1) && !editor.spanAt(begin - 1)) begin -= 1;
    while (end < tokens.length && capital(end) && !editor.spanAt(end)) end += 1;
  }
  return [begin, end];
}

function choose(begin, end) {
  editor.pointed = true;
  if (store.active) {
    editor.put(store.active, [begin, end]);
    hide();
  } else {
    editor.select(begin, end);
    offerLabels();
  }
}

function clicked(event) {
  if (!editor.sentence || dragged) return;
  // The first click may have moved the words, so that the second one is judged by time and place, not by its target.
  const { clientX, clientY, timeStamp } = event;
  const again = timeStamp - last.time < DOUBLE && Math.hypot(clientX - last.x, clientY - last.y) < NEAR;
  if (again && last.t !== null) {
    const { t } = last;
    last = { time: 0 };
    return doubled(t);
  }
  const t = tokenAt(event);
  const span = spanOf(event, t);
  last = { t, time: timeStamp, x: clientX, y: clientY };
  editor.pointed = true;
  if (span && store.active) {
    if (span.label === store.active && span.own) editor.clear([span.begin, span.end]);
    else editor.put(store.active, [span.begin, span.end]);
  } else if (span) {
    editor.select(span.begin, span.end);
    offerLabels();
  } else if (t !== null) {
    if (event.shiftKey) choose(Math.min(editor.anchor, t), Math.max(editor.anchor, t) + 1);
    else choose(t, t + 1);
  }
}

function doubled(t) {
  const own = editor.spanAt(t);
  // The first click has already labelled or unlabelled this word: take that back, and choose the run around it.
  if (store.active && (!own || own.end - own.begin === 1)) editor.undo();
  const span = editor.spanAt(t);
  const [begin, end] = span && span.end - span.begin > 1 ? [span.begin, span.end] : capitalizedRun(t);
  choose(begin, end);
}

function down(event) {
  dragged = false;
  hide();
  if (!event.isPrimary || event.button !== 0 || event.target.closest("[data-span]")) return;
  start = tokenAt(event);
}

function move(event) {
  if (start === null) return;
  const t = tokenAt(event);
  if (t === null || (t === start && !dragged)) return;
  dragged = true;
  editor.pointed = true;
  editor.anchor = start;
  editor.head = t;
  editor.live = true;
  editor.paint();
}

function up() {
  if (start !== null && dragged) choose(...editor.selection);
  start = null;
}

// --- popover ------------------------------------------------------------------------------------------------

export function hide() {
  byId("popover").hidden = true;
}

function offerLabels() {
  const box = byId("popover");
  if (!labels().length) return;
  const [begin, end] = editor.selection;
  const span = editor.spanAt(begin);
  const keys = new Map([...keysOfLabels()].map(([key, label]) => [label, key]));
  const pick = (action) => () => {
    action();
    hide();
    editor.box.focus({ preventScroll: true });
  };
  box.replaceChildren(
    ...labels().map((label) => make("button", {
      class: `label ${colour(label)}`, "aria-pressed": span ? String(span.label === label) : null,
      onclick: pick(() => editor.put(label, [begin, end])),
    }, keys.has(label) ? make("kbd", { text: keys.get(label) }) : "", make("span", { text: label }))),
  );
  if (span) box.append(make("button", { id: "removespan", text: "Remove", onclick: pick(() => editor.clear([begin, end])) }));
  box.hidden = false;
  const last = byId(`t${end - 1}`).getBoundingClientRect();
  const size = box.getBoundingClientRect();
  const above = last.top - size.height - 6;
  box.style.left = `${Math.max(8, Math.min(last.right - size.width / 2, innerWidth - size.width - 8))}px`;
  box.style.top = `${above > 60 ? above : last.bottom + 8}px`;
}

export function listen() {
  editor.box.addEventListener("pointerdown", down);
  editor.box.addEventListener("pointermove", move);
  window.addEventListener("pointerup", up);
  window.addEventListener("pointercancel", () => (start = null));
  editor.box.addEventListener("click", clicked);
  window.addEventListener("pointerdown", (event) => event.target.closest?.("#popover, #sentence") || hide());
  window.addEventListener("scroll", hide, { passive: true });
  window.addEventListener("resize", hide);
}
