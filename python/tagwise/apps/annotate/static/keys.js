// The keyboard.
import * as actions from "./actions.js";
import { byId } from "./dom.js";
import { editor } from "./editor.js";
import * as guidelines from "./guidelines.js";
import * as labels from "./labels.js";
import { hide } from "./pointer.js";
import { keysOfLabels, say, store } from "./store.js";
import { askWhy } from "./panels.js";

const COMMANDS = {
  u: actions.undo, r: actions.redo, s: actions.skip, f: actions.flag, x: actions.reject, c: actions.comment, p: actions.previous,
  w: askWhy, n: labels.open, l: labels.open, g: () => store.state?.guidelines && guidelines.toggle(),
  "/": () => byId("search").focus(), "?": () => byId("keys").showModal(),
};

// Keys that work while the summary is shown.
const ANYWHERE = ["u", "r", "p", "n", "l", "g", "/", "?"];

function undoEdit(event) {
  const again = event.key.toLowerCase() === "y" || event.shiftKey;
  if (again ? editor.redo() : editor.undo()) say(again ? "Done again in this sentence." : "Undone in this sentence.");
  else say(again ? "Nothing to redo in this sentence." : "Nothing to undo in this sentence. u takes back the last one.");
}

let pointed = false; // whether the focus is on a control because the pointer pressed it

function escape() {
  hide();
  labels.deactivate();
  editor.release();
  byId("sentence").focus();
}

function pressed(event) {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") return escape();
  if (event.target.matches?.("input, select, textarea")) return;
  if ((event.ctrlKey || event.metaKey) && ["z", "y"].includes(event.key.toLowerCase())) {
    event.preventDefault();
    return undoEdit(event);
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inTabs = event.target.matches?.("[role=tab]");
  // Enter accepts even if the pointer has just pressed a button of the page, but not while that offers a choice.
  const onControl = event.target.matches?.("button, a, label") && !(pointed && event.target.closest("header, #editor, aside, #more") && byId("conflict").hidden);
  const label = keysOfLabels().get(event.key);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const line = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!store.state) return;
  const editing = !byId("sentence").hidden; // the summary hides the sentence
  if (label !== undefined && editing) labels.use(label);
  else if (!editing && !ANYWHERE.includes(event.key)) return;
  else if (step && !inTabs) editor.go(step, event.shiftKey);
  else if (line && !inTabs) editor.goLine(line, event.shiftKey);
  else if (event.key === "Home") editor.go(-1e6, event.shiftKey);
  else if (event.key === "End") editor.go(1e6, event.shiftKey);
  else if (event.key === "Enter" && !onControl) actions.accept();
  else if (["Delete", "Backspace", "0"].includes(event.key)) editor.clear();
  else if (COMMANDS[event.key]) COMMANDS[event.key]();
  else return;
  event.preventDefault();
}

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Tab" || event.key.startsWith("Arrow")) pointed = false;
    pressed(event);
  });
  document.addEventListener("pointerdown", () => (pointed = true));
}
