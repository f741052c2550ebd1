"use strict";
(function () {
  const el = (name, attributes, ...inside) => {
    const svg = ["svg", "g", "rect", "text", "title"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    for (const part of inside) node.append(part);
    return node;
  };
  const at = (id) => document.getElementById(id);

  // Theme: `?theme=` or the system's preference, until the button is pressed.
  const root = document.documentElement;
  const wanted = new URLSearchParams(location.search).get("theme");
  if (wanted) root.dataset.theme = wanted;
  at("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // A click on a column's head sorts the table by it. Numbers are sorted in descending order first.
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.addEventListener("click", () => {
      const figure = head.classList.contains("figure");
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : figure;
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        const cell = row.cells[column];
        return figure ? (cell.dataset.v === undefined ? null : Number(cell.dataset.v)) : cell.textContent;
      };
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const x = value(a), y = value(b);
        if (x === null || y === null) return (x === null) - (y === null); // missing values last
        const order = typeof x === "number" ? x - y : x.localeCompare(y);
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    }));
  }

  // Highlight a learner in every chart of its section while the pointer is on it.
  for (const section of document.querySelectorAll("section")) {
    const light = (name) => {
      section.classList.toggle("dimmed", name !== null);
      for (const node of section.querySelectorAll("svg [data-series], .legend [data-series]"))
        node.classList.toggle("lit", node.dataset.series === name);
    };
    for (const node of section.querySelectorAll(".legend [data-series], svg.chart [data-series]")) {
      node.addEventListener("mouseenter", () => light(node.dataset.series));
      node.addEventListener("mouseleave", () => light(null));
    }
  }

  const models = JSON.parse(at("data").textContent);
  if (!models.length) return;

  const matrix = (labels, value, colour, text, title) => {
    const longest = Math.max(...labels.map((label) => label.length));
    const left = Math.min(110, 14 + 6 * longest), size = Math.max(15, Math.min(34, 440 / labels.length));
    const extent = left + size * labels.length;
    const svg = el("svg", { viewBox: `0 0 ${extent + 4} ${extent + 4}`, class: "matrix", role: "img" });
    labels.forEach((label, i) => {
      const middle = left + size * (i + 0.5);
      svg.append(el("text", { x: left - 6, y: middle + 3, class: "end" }, label));
      svg.append(el("text", { transform: `translate(${middle + 3} ${left - 6}) rotate(-90)` }, label));
    });
    labels.forEach((from, i) => labels.forEach((to, j) => {
      const v = value(i, j);
      const cell = el("g", { class: "cell" });
      const x = left + size * j, y = left + size * i;
      cell.append(el("rect", { x: x + 0.5, y: y + 0.5, width: size - 1, height: size - 1, rx: 2, style: `fill:${colour(v, i, j)}` }));
      const shown = text(v, i, j);
      const strong = Number((colour(v, i, j).match(/, ([\d.]+)\)$/) || [0, 0])[1]) > 0.64;
      if (shown && size >= 17)
        cell.append(el("text", { x: x + size / 2, y: y + size / 2 + 3, class: strong ? "middle strong" : "middle" }, shown));
      cell.append(el("title", {}, title(from, to, v)));
      svg.append(cell);
    }));
    return svg;
  };

  const showConfusion = (model) => {
    const index = new Map(model.labels.map((label, i) => [label, i]));
    const n = model.labels.map(() => new Array(model.labels.length).fill(0));
    for (const [gold, predicted, count] of model.confusion) n[index.get(gold)][index.get(predicted)] = count;
    const total = n.map((row) => row.reduce((a, b) => a + b, 0) || 1);
    const short = (v) => (v >= 10000 ? Math.round(v / 1000) + "k" : v >= 1000 ? (v / 1000).toFixed(1) + "k" : String(v));
    at("confusion").replaceChildren(matrix(
      model.labels, (i, j) => n[i][j],
      (v, i, j) => v === 0 ? "var(--grid)" : `rgba(var(${i === j ? "--heat" : "--cold"}), ${0.12 + 0.78 * Math.pow(v / total[i], 0.6)})`,
      (v) => (v ? short(v) : ""),
      (gold, predicted, v) => `${gold} labelled ${predicted}: ${v} tokens`));
    if (model.all > model.labels.length)
      at("confusion").append(el("p", {}, `The ${model.labels.length} most frequent of ${model.all} labels.`));
  };

  const showEdges = (model) => {
    if (!model.edges) { at("edges").replaceChildren(el("p", {}, "This learner keeps no transition weights.")); return; }
    const most = Math.max(...model.edges.flat().filter((v) => v !== null).map(Math.abs), 1e-9);
    at("edges").replaceChildren(matrix(
      model.edge_labels, (i, j) => model.edges[i][j],
      (v) => v === null ? "var(--ink)" : v === 0 ? "var(--grid)" : `rgba(var(${v > 0 ? "--heat" : "--cold"}), ${0.08 + 0.82 * Math.abs(v) / most})`,
      (v) => (v ? v.toFixed(Math.abs(v) >= 10 ? 0 : 1) : ""),
      (from, to, v) => `${from} → ${to}: ${v === null ? "forbidden" : v}`));
    at("edges").append(el("p", {}, "Blue favours, orange disfavours."));
  };

  const showTypes = (model) => {
    at("types-head").textContent = model.chunked ? "By type" : "By label";
    const rows = Object.entries(model.types).map(([name, [gold, predicted, correct]]) => ({
      name: name || "(no type)", gold,
      precision: predicted ? correct / predicted : 0, recall: gold ? correct / gold : 0,
      f1: gold + predicted ? (2 * correct) / (gold + predicted) : 0,
    })).sort((a, b) => b.gold - a.gold).slice(0, 24);
    const body = el("tbody");
    for (const row of rows) {
      const share = el("td", { class: "share" }, el("i", { style: `width:${100 * row.f1}%` }), el("span", {}, (100 * row.f1).toFixed(2)));
      body.append(el("tr", {}, el("td", {}, row.name), share,
        el("td", { class: "figure" }, (100 * row.precision).toFixed(2)), el("td", { class: "figure" }, (100 * row.recall).toFixed(2)),
        el("td", { class: "figure" }, row.gold.toLocaleString("en"))));
    }
    const head = el("tr");
    for (const name of [model.chunked ? "type" : "label", "F1", "precision", "recall", "gold"])
      head.append(el("th", { style: "padding:.5rem .8rem" , class: ["type", "label", "F1"].includes(name) ? "" : "figure" }, name));
    at("types").replaceChildren(el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), body)));
  };

  const showStrongest = (model, label) => {
    const found = model.strongest[label] || [];
    const most = Math.max(...found.map(([, w]) => Math.abs(w)), 1e-9);
    at("strongest").replaceChildren(...found.map(([name, w]) => el("div", { class: w < 0 ? "weight minus" : "weight" },
      el("span", {}, (w > 0 ? "+" : "") + w.toFixed(3)),
      el("code", {}, el("i", { style: `width:${(100 * Math.abs(w)) / most}%` }), el("b", {}, name)))));
    if (!found.length) at("strongest").replaceChildren(el("p", {}, "No weights by feature."));
  };

  const showErrors = (model) => {
    at("errors").replaceChildren(...model.errors.map(([tokens, gold, predicted]) => {
      const line = el("div", { class: "sentence" });
      tokens.forEach((token, t) => {
        const plain = gold[t] === predicted[t];
        if (t) line.append(" "); // allow a line break
        if (plain && (gold[t] === "O" || !model.chunked)) { line.append(el("span", {}, token)); return; }
        const tag = el("span", { class: plain ? "tag" : "tag wrong" }, el("span", {}, token), el("em", {}, gold[t]));
        if (!plain) tag.append(el("s", {}, predicted[t]));
        line.append(tag);
      });
      return line;
    }));
    if (!model.errors.length) at("errors").replaceChildren(el("p", {}, "No sentence with an error was kept."));
  };

  const show = (model) => {
    showConfusion(model); showEdges(model); showTypes(model); showErrors(model);
    const labels = model.labels.filter((label) => (model.strongest[label] || []).length);
    at("label").replaceChildren(...labels.map((label) => el("option", { value: label }, label)));
    const first = labels.find((label) => label !== "O") || labels[0];
    if (first) at("label").value = first;
    showStrongest(model, first);
  };

  const order = models.map((_, i) => i).sort((a, b) => models[b].score - models[a].score);
  const groups = new Map();
  for (const i of order) {
    const model = models[i];
    if (!groups.has(model.corpus)) groups.set(model.corpus, el("optgroup", { label: model.corpus }));
    groups.get(model.corpus).append(el("option", { value: i },
      `${model.learner}, ${model.features}, ${model.sentences.toLocaleString("en")} sentences: ${(100 * model.score).toFixed(2)}`));
  }
  const names = [...groups.keys()].sort((a, b) => models.findIndex((m) => m.corpus === a) - models.findIndex((m) => m.corpus === b));
  at("pick").append(...names.map((name) => groups.get(name)));
  const chunked = order.find((i) => models[i].chunked);
  const start = chunked === undefined ? order[0] : chunked;
  at("pick").value = start;
  at("pick").addEventListener("change", () => show(models[Number(at("pick").value)]));
  at("label").addEventListener("change", () => showStrongest(models[Number(at("pick").value)], at("label").value));
  show(models[start]);
})();
