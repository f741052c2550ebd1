// Guidelines beside the page: a Markdown file as elements. Text is never parsed as markup, and links are text.
import { byId, get, make } from "./dom.js";
import { say } from "./store.js";

const INLINE = /(`[^`]+`|\*\*[^*]+\*\*|__[^_]+__|\*[^*]+\*|_[^_]+_|\[[^\]]*\]\([^)]*\))/;

function inline(text) {
  return text.split(INLINE).filter(Boolean).map((part) => {
    if (/^`[^`]+`$/.test(part)) return make("code", { text: part.slice(1, -1) });
    if (/^(\*\*[^*]+\*\*|__[^_]+__)$/.test(part)) return make("strong", { text: part.slice(2, -2) });
    if (/^(\*[^*]+\*|_[^_]+_)$/.test(part)) return make("em", { text: part.slice(1, -1) });
    const link = /^\[([^\]]*)\]\(([^)]*)\)$/.exec(part);
    if (link) return make("span", { text: `${link[1]} (${link[2]})` });
    return make("span", { text: part });
  });
}

// Return the blocks of a text: headings, lists, quotes, code, tables and paragraphs.
export function blocks(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const out = [];
  const take = (test) => {
    const found = [];
    while (lines.length && test(lines[0])) found.push(lines.shift());
    return found;
  };
  while (lines.length) {
    const line = lines[0];
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (!line.trim()) lines.shift();
    else if (heading) {
      lines.shift();
      out.push(make(`h${Math.min(heading[1].length + 1, 6)}`, {}, ...inline(heading[2])));
    } else if (line.startsWith("```")) {
      lines.shift();
      const code = take((one) => !one.startsWith("```"));
      lines.shift();
      out.push(make("pre", { text: "" }, ...code.flatMap((one) => [make("span", { text: one }), "\n"])));
    } else if (/^\s*([-*+]|\d+[.)])\s/.test(line)) {
      const items = take((one) => /^\s*([-*+]|\d+[.)])\s/.test(one) || /^\s+\S/.test(one));
      const list = make(/^\s*\d/.test(line) ? "ol" : "ul");
      for (const item of items) {
        const found = /^\s*(?:[-*+]|\d+[.)])\s+(.*)$/.exec(item);
        if (found) list.append(make("li", {}, ...inline(found[1])));
        else list.lastChild.append(" ", ...inline(item.trim()));
      }
      out.push(list);
    } else if (/^\s*\|.*\|\s*$/.test(line)) {
      const table = make("table");
      for (const row of take((one) => /^\s*\|.*\|\s*$/.test(one))) {
        if (/^[\s|:-]+$/.test(row)) continue;
        const cells = row.trim().slice(1, -1).split("|");
        table.append(make("tr", {}, ...cells.map((cell) => make(table.childElementCount ? "td" : "th", {}, ...inline(cell.trim())))));
      }
      out.push(table);
    } else if (line.startsWith(">")) out.push(make("blockquote", {}, ...inline(take((one) => one.startsWith(">")).map((one) => one.replace(/^>\s?/, "")).join(" "))));
    else out.push(make("p", {}, ...inline(take((one) => one.trim() && !/^(#{1,6}\s|```|>|\s*\|)/.test(one)).join(" ") || lines.shift())));
  }
  return out;
}

export async function toggle() {
  const box = byId("guidelines");
  const on = box.hidden;
  if (on) {
    try {
      const found = await get("api/guidelines");
      box.replaceChildren(make("button", { class: "icon close", text: "×", "aria-label": "Close the guidelines", onclick: toggle }), ...blocks(found.text));
    } catch (error) {
      say(error.message, true);
      return;
    }
  }
  box.hidden = !on;
  document.body.classList.toggle("guided", on);
  byId("guide").setAttribute("aria-expanded", String(on));
}
