// Panels of the page: queue, learning curve, explanation, mistakes, agreement, comparison, files, progress.
import { byId, draw, make, percent, phrase, visible } from "./dom.js";

export function queue(list, current, choose) {
  byId("queue").replaceChildren(
    ...list.map((one) =>
      make("li", {}, make("button", {
        class: one.id === current ? "here" : "", "aria-current": one.id === current ? "true" : null,
        text: one.text || "(empty)", title: one.score === null ? null : `wanted: ${one.score.toFixed(3)}`, dir: "auto",
        onclick: () => choose(one.id),
      })),
    ),
  );
}

export function curve(points, asked) {
  byId("curvecard").hidden = !asked;
  if (!asked) return;
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

export function why(found, labels) {
  const box = byId("panel-why");
  box.replaceChildren();
  const decision = found.decision;
  if (decision) {
    const title = make("h3", {});
    title.append(make("bdi", { text: found.word }), " is ", make("b", { text: decision.label }), " and not ", make("b", { text: decision.runner_up }));
    const most = Math.max(...decision.votes.map((v) => Math.abs(v.amount)), 1e-9);
    const table = make("table", { class: "votes" }, make("caption", { class: "hidden", text: "Votes of features" }));
    for (const vote of decision.votes) {
      const bar = draw("svg", { viewBox: "0 0 100 10", class: "votebar", "aria-hidden": "true" });
      const size = (50 * Math.abs(vote.amount)) / most;
      bar.append(draw("rect", { x: vote.amount < 0 ? 50 - size : 50, y: 1, width: Math.max(size, 0.5), height: 8, class: vote.amount < 0 ? "against" : "for" }));
      table.append(make("tr", {},
        make("td", { class: "num", text: (vote.amount > 0 ? "+" : "") + vote.amount.toFixed(2) }),
        make("td", {}, bar), make("td", { class: "feature", text: vote.feature }),
      ));
    }
    box.append(title, make("p", { class: "quiet", text: `The votes of all features sum to ${decision.difference.toFixed(3)}, the difference of the two readings’ scores.` }), table);
  }
  box.append(make("h3", { text: "Readings" }));
  const readings = make("ol", { class: "readings" });
  for (const one of found.readings) {
    const what = one.spans.filter(([, , y]) => y !== "O").map(([, , y]) => y);
    const said = what.length ? phrase(found.tokens, one.spans, labels) : make("span", { class: "quiet", text: "no span" });
    readings.append(make("li", {}, make("span", { class: "num", text: one.probability === null ? one.score.toFixed(2) : percent(one.probability) }), " ", said));
  }
  box.append(readings, make("h3", { text: "Labelled sentences like it" }));
  if (!found.alike.length) box.append(make("p", { class: "quiet", text: "None yet." }));
  for (const one of found.alike) box.append(make("p", { class: "alike" }, phrase(one.tokens, one.spans, labels, new Set(one.at === null ? [] : [one.at]))));
}

function pairs(box, list, labels, names, choose) {
  for (const one of list) {
    box.append(make("article", { class: "pair" },
      make("p", {}, make("small", { text: names[0] }), phrase(one.tokens, one.spans, labels)),
      make("p", {}, make("small", { text: names[1] }), phrase(one.tokens, one.found, labels)),
      make("button", { text: "Check this one", onclick: () => choose(one.id) }),
    ));
  }
}

export function mistakes(list, labels, choose) {
  const box = byId("suspects");
  box.replaceChildren(make("p", { text: list.length ? `${list.length} to check, the most doubtful first.` : "None: the tagger agrees with every label." }));
  pairs(box, list, labels, ["labelled", "tagger"], choose);
}

export function agreement(found, labels, choose) {
  const box = byId("agreement");
  const f1 = found.f1 === null ? "" : `, F1 of spans ${(100 * found.f1).toFixed(1)}`;
  box.replaceChildren(make("p", { text: `${found.sentences} sentences: kappa ${found.kappa.toFixed(3)}${f1}; ${found.disagreements.length} differ.` }));
  pairs(box, found.disagreements, labels, ["here", "there"], choose);
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
  const said = event.kind === "end" ? "Done." : `${event.done} of ${event.total}: ${event.cell ?? ""} ${event.text || ""}`;
  box.replaceChildren(make("p", { class: "quiet", text: said }));
  if (rows.length) box.append(table);
  if (event.kind === "end") box.append(make("a", { href: "api/compare/report", class: "button", download: "comparison.html", text: "The whole report" }));
}

export function files(state) {
  byId("exports").replaceChildren(
    ...state.exports.map((form) => make("a", { class: "button", href: `api/export?format=${encodeURIComponent(form)}`, download: true, text: form })),
  );
  byId("documents").replaceChildren(
    ...state.documents.map((one) => make("li", { text: `${one.name}: ${one.sentences} sentences` })),
  );
}

export function counts(state) {
  const { sentences, accepted, given, open } = state.counts;
  const done = sentences - open;
  byId("counts").textContent = `${accepted} accepted${given ? `, ${given} came labelled` : ""}, ${open} open`;
  const bar = byId("progress");
  bar.setAttribute("aria-valuemax", String(Math.max(sentences, 1)));
  bar.setAttribute("aria-valuenow", String(done));
  byId("bar").style.width = `${(100 * done) / Math.max(sentences, 1)}%`;
  byId("stale").textContent = state.counts.stale ? `ranking ${visible(String(state.counts.stale))} …` : "";
}
