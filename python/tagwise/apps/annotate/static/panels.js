// Panels of the page: order, learning curve, explanation, mistakes, agreement, comparison, files.
import { byId, count, draw, get, make, percent, post, upload } from "./dom.js";
import { editor } from "./editor.js";
import { phrase, say, store } from "./store.js";

let choose = () => {}; // set by `listen`: shows a sentence

export function curve(points, scored) {
  byId("curvecard").hidden = !scored;
  if (!scored) return;
  const box = byId("curve");
  byId("curvelast").textContent = points.length ? (100 * points.at(-1).score).toFixed(1) : "after some sentences";
  if (points.length < 2) return box.replaceChildren(make("p", { class: "quiet", text: "The curve begins with the second score." }));
  const [w, h, pad, left] = [320, 130, 16, 30];
  const most = Math.max(...points.map((p) => p.sentences), 1);
  const top = Math.max(0.1, ...points.map((p) => p.score));
  const x = (n) => left + (n / most) * (w - left - pad);
  const y = (s) => h - 22 - (s / top) * (h - 22 - pad);
  const name = `Score ${(100 * points.at(-1).score).toFixed(1)} after ${most} sentences`;
  const svg = draw("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": name });
  for (const part of [0, 0.5, 1]) {
    svg.append(draw("line", { x1: left, x2: w - pad, y1: y(top * part), y2: y(top * part), class: "grid" }));
    const text = draw("text", { x: left - 5, y: y(top * part) + 4, class: "end" });
    text.textContent = (100 * top * part).toFixed(0);
    svg.append(text);
  }
  svg.append(draw("polyline", { points: points.map((p) => `${x(p.sentences)},${y(p.score)}`).join(" "), class: "line" }));
  svg.append(draw("circle", { cx: x(points.at(-1).sentences), cy: y(points.at(-1).score), r: 4, class: "dot" }));
  const end = draw("text", { x: w - pad, y: h - 5, class: "end" });
  end.textContent = `${most} sentences`;
  svg.append(end);
  box.replaceChildren(svg);
}

// Describe the label of a word, in contrast to another one.
function described(label, other) {
  if (store.state.settings.kind === "tokens") return label;
  if (label === "O") return "unlabelled";
  const type = label.slice(2);
  if (type !== other.slice(2)) return type;
  return label.startsWith("B-") ? `the start of a new ${type}` : `part of the ${type} before it`;
}

export function why(found) {
  const box = byId("panel-why");
  box.replaceChildren();
  const { decision } = found;
  if (decision) {
    const title = make("h3", {}, "Why ", make("bdi", { text: `“${found.word}”` }), " is ", make("b", { text: described(decision.label, decision.runner_up) }),
      " and not ", make("b", { text: described(decision.runner_up, decision.label) }));
    const most = Math.max(...decision.votes.map((v) => Math.abs(v.amount)), 1e-9);
    const head = ["Vote", "", "Word", "Feature"].map((text) => (text ? make("th", { scope: "col", text }) : make("td")));
    const table = make("table", { class: "votes" }, make("caption", { class: "hidden", text: "Votes of features" }), make("tr", {}, ...head));
    for (const vote of decision.votes) {
      const bar = draw("svg", { viewBox: "0 0 100 10", class: "votebar", "aria-hidden": "true" });
      const size = (50 * Math.abs(vote.amount)) / most;
      bar.append(draw("rect", { x: vote.amount < 0 ? 50 - size : 50, y: 1, width: Math.max(size, 0.5), height: 8, class: vote.amount < 0 ? "against" : "for" }));
      table.append(make("tr", {},
        make("td", { class: "num", text: (vote.amount > 0 ? "+" : "") + vote.amount.toFixed(2) }),
        make("td", {}, bar), make("td", { class: "word", text: vote.word, dir: "auto" }), make("td", { class: "feature", text: vote.feature }),
      ));
    }
    box.append(title, make("p", { class: "quiet", text: `All votes sum to ${decision.difference.toFixed(2)}. Votes of neighbouring words count too, because labels depend on each other.` }), table);
  }
  box.append(make("h3", { text: "Other readings" }));
  const readings = make("ol", { class: "readings" });
  for (const one of found.readings) {
    const some = one.spans.some(([, , y]) => y !== "O");
    const text = some ? phrase(found, one.spans) : make("span", { class: "quiet", text: "no labels" });
    const number = one.share !== null ? percent(one.share) : one.behind < 0.005 ? "best" : `−${one.behind.toFixed(2)}`;
    readings.append(make("li", {}, make("span", { class: "num", text: number }), " ", text));
  }
  box.append(readings, make("h3", { text: "Labelled sentences like it" }));
  if (!found.alike.length) box.append(make("p", { class: "quiet", text: "None yet." }));
  for (const one of found.alike) box.append(make("p", { class: "alike" }, phrase(one, one.spans, new Set(one.at === null ? [] : [one.at]))));
}

export async function askWhy() {
  const sentence = store.state?.sentence;
  if (!sentence) return;
  tab("why");
  try {
    why({ ...(await get(`api/why?id=${sentence.id}&token=${editor.head}`)), tokens: sentence.tokens, joined: sentence.joined });
  } catch (error) {
    byId("panel-why").replaceChildren(make("p", { class: "quiet", text: error.message }));
  }
  byId("more").scrollIntoView({ block: "nearest" });
}

function pairs(box, list, names) {
  for (const [k, one] of list.entries()) {
    box.append(make("article", { class: "pair" },
      make("p", {}, make("small", { text: names[0] }), phrase(one, one.spans)),
      make("p", {}, make("small", { text: names[1] }), phrase(one, one.found)),
      make("button", { text: "Check this one", onclick: () => choose(one.id, list.slice(k + 1).map((next) => next.id)) }),
    ));
  }
}

export function mistakes(list) {
  const box = byId("suspects");
  box.replaceChildren(make("p", { text: list.length ? `${count(list.length, "sentence")} to check, the most doubtful first.` : "None: the tagger agrees with every label." }));
  pairs(box, list, ["labelled", "tagger"]);
}

export function agreement(found) {
  const box = byId("agreement");
  const f1 = found.f1 === null ? "" : `, F1 of spans ${(100 * found.f1).toFixed(1)}`;
  box.replaceChildren(make("p", { text: `${found.sentences} sentences: kappa ${found.kappa.toFixed(3)}${f1}; ${found.disagreements.length} differ.` }));
  pairs(box, found.disagreements, ["here", "there"]);
}

export function comparison(event) {
  const box = byId("comparison");
  if (event.kind === "failed") return box.replaceChildren(make("p", { class: "bad", text: event.text }));
  const rows = [...(event.rows ?? [])].sort((a, b) => (b.f1 ?? b.accuracy) - (a.f1 ?? a.accuracy));
  const head = make("tr", {}, ...["learner", "F1", "accuracy", "seconds"].map((text) => make("th", { text, scope: "col" })));
  const table = make("table", { class: "results" }, head);
  const number = (value, digits = 1) => (value === null || value === undefined ? "" : value.toFixed(digits));
  for (const row of rows) {
    table.append(make("tr", {},
      make("td", { text: row.learner }), make("td", { class: "num", text: row.f1 === null ? "" : number(100 * row.f1) }),
      make("td", { class: "num", text: number(100 * row.accuracy) }), make("td", { class: "num", text: number(row.seconds, 2) }),
    ));
  }
  const message = event.kind === "end" ? "Done." : `${event.done} of ${event.total}: ${event.cell ?? ""} ${event.text || ""}`;
  box.replaceChildren(make("p", { class: "quiet", text: message }));
  if (rows.length) box.append(table);
  if (event.kind === "end") box.append(make("a", { href: "api/compare/report", class: "button", download: "comparison.html", text: "The whole report" }));
}

let drawnFiles = ""; // exports and documents on the page

export function files(state) {
  const content = JSON.stringify([state.exports, state.documents]);
  if (content === drawnFiles) return;
  drawnFiles = content;
  byId("exports").replaceChildren(
    ...state.exports.map((form) => make("a", { class: "button", href: `api/export?format=${encodeURIComponent(form)}`, download: true, text: form })),
  );
  byId("documents").replaceChildren(
    ...state.documents.map((one) => make("li", { text: `${one.name}: ${one.sentences} sentences` })),
  );
}

export function strategies(state) {
  const box = byId("strategy");
  if (!box.children.length) box.append(...state.strategies.map((one) => make("option", { value: one.name, text: one.title })));
  box.value = state.settings.strategy;
}

const TABS = ["why", "mistakes", "compare", "files"];
function tab(name, focus = false) {
  for (const one of TABS) {
    const chosen = one === name;
    const button = byId(`tab-${one}`);
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    byId(`panel-${one}`).hidden = !chosen;
    if (chosen && focus) button.focus();
  }
}

async function whileDisabled(control, action) {
  control.disabled = true;
  try {
    await action();
  } catch (error) {
    say(error.message, true);
  } finally {
    control.disabled = false;
  }
}

export function listen(actions) {
  ({ choose } = actions);
  for (const [i, name] of TABS.entries()) {
    const button = byId(`tab-${name}`);
    button.addEventListener("click", () => tab(name));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) tab(TABS[(i + step + TABS.length) % TABS.length], true);
    });
  }
  byId("findmistakes").addEventListener("click", (event) =>
    whileDisabled(event.target, async () => mistakes((await post("api/mistakes")).suspects)));
  byId("begincompare").addEventListener("click", (event) =>
    whileDisabled(event.target, async () => {
      const found = await post("api/compare");
      comparison({ kind: "start", done: 0, total: found.learners.length, cell: "begins", rows: [] });
    }));
  byId("otherfile").addEventListener("change", (event) =>
    whileDisabled(event.target, async () => {
      const [file] = event.target.files;
      if (file) agreement(await upload("api/agreement", file));
      event.target.value = "";
    }));
  byId("importfile").addEventListener("change", (event) => {
    const [file] = event.target.files;
    if (file) actions.act(() => upload(`api/import?name=${encodeURIComponent(file.name)}`, file), "Imported.");
    event.target.value = "";
  });
  byId("strategy").addEventListener("change", (event) =>
    actions.act(() => post("api/strategy", { strategy: event.target.value }), "Order changed."));
}
