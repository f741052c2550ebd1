"use strict";
// Everything is readable without this script. It adds the theme button, sorting, filters and the choice of models.
(function () {
  const el = (name, attributes, ...inside) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    node.append(...inside);
    return node;
  };
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const choice = (text, options, attributes = {}) => {
    const select = el("select", attributes, ...options.map(([value, name]) => el("option", { value }, name)));
    return [el("label", {}, text + " ", select), select];
  };

  // Theme: `?theme=` or the system's preference, until the button is pressed.
  const root = document.documentElement, button = document.getElementById("theme");
  const wanted = new URLSearchParams(location.search).get("theme");
  if (wanted) root.dataset.theme = wanted;
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // A click on a column's head sorts the table by it. Numbers are sorted in descending order first.
  for (const table of all("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
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

  // Highlight a learner in the charts of its section while the pointer is on it.
  for (const section of all("section")) {
    const nodes = all(".bars [data-series], svg.chart [data-series]", section);
    const light = (name) => {
      section.classList.toggle("dimmed", name !== null);
      for (const node of nodes) node.classList.toggle("lit", node.dataset.series === name);
    };
    for (const node of nodes) {
      node.addEventListener("mouseenter", () => light(node.dataset.series));
      node.addEventListener("mouseleave", () => light(null));
    }
  }

  // One model at a time, chosen by a list, by a link of the table or by the address.
  for (const block of all(".models")) {
    const models = all("details.model", block);
    const [label, select] = choice("Model", models.map((m) => [m.id, m.firstElementChild.textContent]), { class: "pick-model" });
    const show = (id) => {
      select.value = id;
      for (const model of models) { model.hidden = model.id !== id; model.open = model.id === id; }
    };
    block.before(el("p", { class: "controls" }, label));
    select.addEventListener("change", () => show(select.value));
    const follow = () => {
      const id = location.hash.slice(1);
      if (!models.some((m) => m.id === id)) return;
      show(id);
      block.previousElementSibling.scrollIntoView();
    };
    addEventListener("hashchange", follow);
    show(models[0].id);
    follow();
  }

  // Filters of errors: by kind, by type, and by text.
  for (const block of all(".errors")) {
    const groups = all(".group", block);
    const unique = (values) => [["", "all"], ...[...new Set(values)].map((v) => [v, v])];
    const [kindLabel, kind] = choice("Kind", unique(groups.map((g) => g.dataset.kind)), { class: "filter-kind" });
    const types = groups.flatMap((g) => g.dataset.types.split("\n")).sort();
    const [typeLabel, type] = choice("Type", unique(types), { class: "filter-type" });
    const text = el("input", { type: "search", class: "filter-text" });
    const status = el("span", { role: "status" });
    const filter = () => {
      const part = text.value.toLowerCase();
      let shown = 0;
      for (const group of groups) {
        const lines = all("li", group);
        let found = 0;
        for (const line of lines) {
          line.hidden = part !== "" && !line.textContent.toLowerCase().includes(part);
          found += !line.hidden;
        }
        const fits = (!kind.value || group.dataset.kind === kind.value) && (!type.value || group.dataset.types.split("\n").includes(type.value));
        group.hidden = !fits || (part !== "" && !found);
        shown += !group.hidden;
        if (part) group.open = !group.hidden;
      }
      status.textContent = shown === groups.length ? "" : `${shown} of ${groups.length} kinds shown`;
    };
    for (const node of [kind, type]) node.addEventListener("change", filter);
    text.addEventListener("input", filter);
    const search = el("label", {}, "Text ", text);
    block.before(el("p", { class: "controls" }, ...(new Set(groups.map((g) => g.dataset.kind)).size > 1 ? [kindLabel] : []), typeLabel, search, status));
    if (groups[0]) groups[0].open = true;
  }

  // Two models, sentence by sentence.
  for (const block of all(".versus")) {
    const data = JSON.parse(block.querySelector("script").textContent), cards = all(".sentence", block);
    const names = data.names.map((_, i) => [String(i), all(`thead th`, block)[i].textContent]);
    const [oneLabel, one] = choice("Compare", names, { class: "pick-one" });
    const [otherLabel, other] = choice("with", names, { class: "pick-other" });
    const [whichLabel, which] = choice("Show", [["", ""], ["", ""], ["", ""], ["", ""]], { class: "pick-which" });
    const status = el("p", { role: "status", class: "verdict" });
    other.value = "1";
    ["differ", "one", "other", "none"].forEach((value, i) => { which.options[i].value = value; });
    const update = () => {
      const a = Number(one.value), b = Number(other.value), [x, y] = [names[a][1], names[b][1]];
      [`where they differ`, `only ${x} right`, `only ${y} right`, "both wrong"].forEach((text, i) => { which.options[i].textContent = text; });
      const both = data.right[a] - data.only[a][b], neither = data.n - both - data.only[a][b] - data.only[b][a];
      const number = (n) => n.toLocaleString("en");
      let shown = 0;
      for (const card of cards) {
        const right = card.dataset.right.split(" ").filter(Boolean).map(Number);
        const mine = right.includes(a), its = right.includes(b);
        card.hidden = !{ differ: mine !== its, one: mine && !its, other: its && !mine, none: !mine && !its }[which.value];
        shown += !card.hidden;
        for (const name of all("b[data-model]", card)) name.hidden = ![a, b].includes(Number(name.dataset.model));
        for (const line of all("p:not(.gold)", card)) line.hidden = all("b[data-model]", line).every((name) => name.hidden);
      }
      const alone = [data.only[a][b], data.only[b][a]];
      const of = { differ: alone[0] + alone[1], one: alone[0], other: alone[1], none: neither }[which.value];
      status.textContent = a === b ? "Choose two different models." :
        `${x} alone is right in ${number(alone[0])} sentences, ${y} alone in ${number(alone[1])}, both in ${number(both)}, ` +
        `neither in ${number(neither)}.` + (cards.length ? ` ${shown} of ${number(of)} shown.` : "");
    };
    for (const node of [one, other, which]) node.addEventListener("change", update);
    const list = block.querySelector(".sentences");
    (list || block.lastElementChild).before(el("p", { class: "controls" }, oneLabel, otherLabel, ...(list ? [whichLabel] : [])), status);
    update();
  }
  root.dataset.ready = "";
})();
