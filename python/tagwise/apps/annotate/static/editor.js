// Editor of one sentence: its tokens, its spans, and a selection that the keyboard and the pointer move.
import { byId, make, percent, visible } from "./dom.js";

export const KEYS = "123456789".split("");

export class Editor {
  constructor(changed) {
    this.box = byId("sentence");
    this.changed = changed; // callback after each update of the selection
    this.sentence = null;
    this.labels = [];
    this.kind = "spans";
    this.spans = [];
    this.anchor = this.head = 0;
    this.dragging = false;
    this.box.addEventListener("pointerdown", (event) => this.down(event));
    this.box.addEventListener("pointermove", (event) => this.move(event));
    window.addEventListener("pointerup", () => (this.dragging = false));
  }

  // Show a sentence with its undone or stored labels, or with the proposal if it has none.
  show(sentence, labels, kind) {
    const same = this.sentence && sentence && this.sentence.id === sentence.id;
    this.sentence = sentence;
    this.touched = false; // whether the user has set or removed a label since `show`
    this.labels = labels;
    this.kind = kind;
    if (!same) this.anchor = this.head = 0;
    if (sentence) {
      const known = sentence.undone ?? sentence.spans;
      this.spans = known
        ? known.map(([begin, end, label]) => ({ begin, end, label, own: true }))
        : sentence.proposal.map((one) => ({ ...one, own: false }));
    } else this.spans = [];
    this.render();
  }

  get selection() {
    return [Math.min(this.anchor, this.head), Math.max(this.anchor, this.head) + 1];
  }

  spanAt(t) {
    return this.spans.find((one) => one.begin <= t && t < one.end);
  }

  // --- changes -------------------------------------------------------------------------------------------

  put(label) {
    if (!this.sentence) return;
    const [begin, end] = this.selection;
    this.touched = true;
    this.take(begin, end);
    if (this.kind === "tokens") {
      for (let t = begin; t < end; t++) this.spans.push({ begin: t, end: t + 1, label, own: true });
    } else this.spans.push({ begin, end, label, own: true });
    this.spans.sort((a, b) => a.begin - b.begin);
    this.render();
  }

  clear() {
    this.touched = true;
    this.take(...this.selection);
    this.render();
  }

  // Remove the spans that overlap the tokens from begin to end (exclusive).
  take(begin, end) {
    this.spans = this.spans.filter((one) => one.end <= begin || one.begin >= end);
  }

  go(step, extend) {
    if (!this.sentence) return;
    this.head = Math.min(this.sentence.tokens.length - 1, Math.max(0, this.head + step));
    if (!extend) this.anchor = this.head;
    this.paint();
  }

  select(begin, end) {
    this.anchor = begin;
    this.head = end - 1;
    this.paint();
  }

  // --- the pointer ---------------------------------------------------------------------------------------

  tokenAt(event) {
    const found = document.elementFromPoint(event.clientX, event.clientY)?.closest?.("[data-t]");
    return found && this.box.contains(found) ? Number(found.dataset.t) : null;
  }

  down(event) {
    const chip = event.target.closest?.("[data-span]");
    if (chip) {
      const one = this.spans[Number(chip.dataset.span)];
      this.select(one.begin, one.end);
      return;
    }
    const t = this.tokenAt(event);
    if (t === null) return;
    if (!event.shiftKey) this.anchor = t;
    this.head = t;
    this.dragging = true;
    this.paint();
  }

  move(event) {
    if (!this.dragging) return;
    const t = this.tokenAt(event);
    if (t !== null && t !== this.head) {
      this.head = t;
      this.paint();
    }
  }

  // --- the page ------------------------------------------------------------------------------------------

  render() {
    this.box.replaceChildren();
    const sentence = this.sentence;
    if (!sentence) {
      this.box.append(make("p", { class: "quiet", text: "Nothing is left to label here." }));
      return;
    }
    let t = 0;
    const token = (i) => {
      const span = this.spanAt(i);
      const sure = span && span.probability !== null ? `, ${percent(span.probability)}` : "";
      const said = span ? `, ${span.label}${span.own ? "" : `, proposed${sure}`}` : "";
      return make("span", {
        class: "tok", role: "option", id: `t${i}`, "data-t": String(i), text: sentence.tokens[i],
        "aria-label": `${visible(sentence.tokens[i])}${visible(said)}`, "aria-selected": "false",
      });
    };
    this.spans.forEach((span, n) => {
      while (t < span.begin) this.box.append(token(t++), " ");
      const colour = Math.max(0, this.labels.indexOf(span.label)) % 12;
      const box = make("span", { class: `span c${colour}${span.own ? " own" : ""}`, role: "group", "aria-label": visible(span.label) });
      while (t < span.end) {
        box.append(token(t++));
        if (t < span.end) box.append(" ");
      }
      const chip = make("span", { class: "chip", "data-span": String(n), "aria-hidden": "true", text: span.label });
      if (!span.own && span.probability !== null) chip.append(make("i", { text: percent(span.probability) }));
      box.append(chip);
      this.box.append(box, " ");
    });
    while (t < sentence.tokens.length) this.box.append(token(t++), " ");
    this.paint();
  }

  paint() {
    const [begin, end] = this.selection;
    for (const one of this.box.querySelectorAll("[data-t]")) {
      const t = Number(one.dataset.t);
      const chosen = t >= begin && t < end;
      one.classList.toggle("chosen", chosen);
      one.classList.toggle("cursor", t === this.head);
      one.setAttribute("aria-selected", String(chosen));
    }
    this.box.setAttribute("aria-activedescendant", `t${this.head}`);
    this.changed();
  }
}
