// DOM and HTTP helpers. All text is set with textContent, never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

// Invisible characters and characters that change the direction of text. `visible` replaces them by their code points.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu;

export const visible = (text) =>
  String(text).replace(HIDDEN, (c) => `⟨${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

export const byId = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = visible(value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const percent = (p) => (p >= 0.995 ? "99+ %" : `${Math.round(100 * p)} %`);

// Return a read-only element with tokens and spans.
export function phrase(tokens, spans, labels, marked = new Set()) {
  const out = make("span", { class: "phrase", dir: "auto" });
  let t = 0;
  const token = (i) => make("span", { class: marked.has(i) ? "tok marked" : "tok", text: tokens[i] });
  for (const [begin, end, label] of spans.filter(([, , y]) => y !== "O")) {
    while (t < begin) out.append(token(t++), " ");
    const box = make("span", { class: `mini c${Math.max(0, labels.indexOf(label)) % 12}` });
    while (t < end) {
      box.append(token(t++));
      if (t < end) box.append(" ");
    }
    box.append(make("b", { text: label }));
    out.append(box, " ");
  }
  while (t < tokens.length) out.append(token(t++), " ");
  return out;
}

export class Refused extends Error {}

async function answered(response) {
  const kind = response.headers.get("content-type") || "";
  const value = kind.includes("json") ? await response.json() : null;
  if (!response.ok) throw new Refused(value?.error?.message ?? `The server answered ${response.status}.`);
  return value;
}

export const get = async (path) => answered(await fetch(path, { headers: { accept: "application/json" } }));

export const post = async (path, value = {}) =>
  answered(await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value) }));

export const upload = async (path, file) =>
  answered(await fetch(path, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file }));
