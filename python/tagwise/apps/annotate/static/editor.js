// Editor of one sentence: its tokens, its spans, a selection, and undo within the sentence.
import { byId, make, percent, visible } from "./dom.js";
import * as drafts from "./drafts.js";
import { colour, spaces, store } from "./store.js";

const LONG = 45; // number of tokens from which on a sentence is set smaller

const plain = ([begin, end, label]) => ({ begin, end, label, own: true });

export class Editor {
  constructor() {
    this.box = byId("sentence");
    this.sentence = null;
    this.spans = [];
    this.anchor = this.head = 0;
    this.live = false; // whether the selection was made and not labelled yet
    this.pointed = false; // whether the last selection came from the pointer
    this.touched = false; // whether there are edits that are not accepted
    this.past = [];
    this.future = [];
  }

  // Show a sentence with its draft, its undone or stored labels, or with the proposal. Return an outdated draft or null.
  show(sentence) {
    const same = this.sentence && sentence && this.sentence.id === sentence.id;
    this.sentence = sentence;
    this.touched = this.live = false;
    this.past = [];
    this.future = [];
    if (!same) this.anchor = this.head = 0;
    let outdated = null;
    if (!sentence) this.spans = [];
    else {
      const draft = drafts.load(sentence);
      if (draft && draft.version === sentence.version) {
        this.spans = draft.spans;
        this.touched = true;
      } else {
        outdated = draft;
        const known = sentence.undone ?? sentence.spans;
        this.spans = known ? known.map(plain) : sentence.proposal.map((one) => ({ ...one, own: false }));
        if (sentence.undone && !draft) this.keep(); // labels that were taken back stay until they are accepted
      }
    }
    this.render();
    return outdated;
  }

  get kind() {
    return store.state.settings.kind;
  }

  get selection() {
    return [Math.min(this.anchor, this.head), Math.max(this.anchor, this.head) + 1];
  }

  get plain() {
    return this.spans.map(({ begin, end, label }) => ({ begin, end, label }));
  }

  spanAt(t) {
    return this.spans.find((one) => one.begin <= t && t < one.end);
  }

  // --- changes -------------------------------------------------------------------------------------------

  keep() {
    this.touched = true;
    drafts.save(this.sentence.id, this.sentence.version, this.spans);
  }

  // Change the spans with a function of them, which can be undone.
  change(edit) {
    if (!this.sentence) return;
    this.past.push(this.spans);
    this.future = [];
    this.spans = edit(this.spans);
    this.live = false;
    this.keep();
    this.render();
  }

  put(label, [begin, end] = this.selection) {
    const one = (a, b) => ({ begin: a, end: b, label, own: true });
    const made = this.kind === "tokens" ? Array.from({ length: end - begin }, (_, k) => one(begin + k, begin + k + 1)) : [one(begin, end)];
    this.change((spans) => [...without(spans, begin, end), ...made].sort((a, b) => a.begin - b.begin));
  }

  clear([begin, end] = this.selection) {
    this.change((spans) => without(spans, begin, end));
  }

  // Undo or redo within the sentence. Return whether there was anything.
  step(from, to) {
    if (!from.length) return false;
    to.push(this.spans);
    this.spans = from.pop();
    this.keep();
    this.render();
    return true;
  }

  undo() {
    return this.step(this.past, this.future);
  }

  redo() {
    return this.step(this.future, this.past);
  }

  // Move to another token by a number of tokens, or extend the selection.
  go(step, extend) {
    if (this.sentence) this.goTo(Math.min(this.sentence.tokens.length - 1, Math.max(0, this.head + step)), extend);
  }

  // Move to the nearest token of the line above (-1) or below (1), or extend the selection.
  goLine(step, extend) {
    if (!this.sentence) return;
    const boxes = [...this.box.querySelectorAll("[data-t]")].map((one) => one.getClientRects()[0]);
    const middle = (box) => (box.top + box.bottom) / 2;
    const here = boxes[this.head];
    const beyond = boxes.map((box, t) => ({ t, down: step * (middle(box) - middle(here)), aside: Math.abs(box.left + box.right - here.left - here.right) }))
      .filter(({ down }) => down > here.height / 2);
    if (!beyond.length) return;
    const line = Math.min(...beyond.map(({ down }) => down));
    const near = beyond.filter(({ down }) => down < line + here.height / 2);
    this.goTo(near.reduce((a, b) => (b.aside < a.aside ? b : a)).t, extend);
  }

  goTo(t, extend) {
    this.head = t;
    if (!extend) this.anchor = t;
    this.live = true;
    this.pointed = false;
    this.paint();
    byId(`t${t}`).scrollIntoView({ block: "nearest" });
  }

  select(begin, end) {
    this.anchor = begin;
    this.head = end - 1;
    this.live = true;
    this.paint();
  }

  release() {
    this.live = false;
    this.anchor = this.head;
    this.paint();
  }

  // --- the page ------------------------------------------------------------------------------------------

  render() {
    this.box.replaceChildren();
    const sentence = this.sentence;
    this.box.classList.toggle("long", (sentence?.tokens.length ?? 0) >= LONG);
    if (!sentence) return;
    let t = 0;
    const text = spaces(sentence);
    const space = (i) => make("span", { class: "gap", "data-gap": String(i), text: text(i) });
    const token = (i) => {
      const span = this.spanAt(i);
      const sure = span && typeof span.probability === "number" ? `, ${percent(span.probability)}` : "";
      const description = span ? `, ${span.label}${span.own ? "" : `, proposed${sure}`}` : "";
      return make("span", {
        class: "tok", role: "option", id: `t${i}`, "data-t": String(i), text: sentence.tokens[i],
        "aria-label": `${visible(sentence.tokens[i])}${visible(description)}`, "aria-selected": "false",
      });
    };
    this.spans.forEach((span, n) => {
      while (t < span.begin) this.box.append(token(t), space(t++));
      const box = make("span", { class: `span ${colour(span.label)}${span.own ? " own" : ""}`, role: "group", "aria-label": visible(span.label) });
      while (t < span.end - 1) box.append(token(t), space(t++));
      const chip = make("span", { class: "chip", "data-span": String(n), "aria-hidden": "true", text: span.label });
      if (!span.own && typeof span.probability === "number") chip.append(make("i", { text: percent(span.probability) }));
      box.append(make("span", { class: "tail" }, token(t), chip)); // the label stays on the line of its last word
      this.box.append(box, space(t++));
    });
    while (t < sentence.tokens.length) this.box.append(token(t), space(t++));
    this.paint();
  }

  paint() {
    const [begin, end] = this.selection;
    for (const one of this.box.querySelectorAll("[data-gap]")) {
      const t = Number(one.dataset.gap);
      one.classList.toggle("chosen", t >= begin && t + 1 < end && (this.live || !this.pointed));
    }
    for (const one of this.box.querySelectorAll("[data-t]")) {
      const t = Number(one.dataset.t);
      const chosen = t >= begin && t < end && (this.live || !this.pointed);
      one.classList.toggle("chosen", chosen && (this.live || end - begin > 1));
      one.classList.toggle("cursor", t === this.head && !this.pointed);
      one.setAttribute("aria-selected", String(chosen));
    }
    if (this.sentence) this.box.setAttribute("aria-activedescendant", `t${this.head}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}

// Return the spans that do not overlap the tokens from begin to end (exclusive).
const without = (spans, begin, end) => spans.filter((one) => one.end <= begin || one.begin >= end);

export const editor = new Editor();
