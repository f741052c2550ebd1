// DOM and HTTP helpers. All text is set with textContent, never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

// Scripts in which joiners (U+200C and U+200D) shape the letters around them.
const JOINING = ["Arabic", "Bengali", "Devanagari", "Gujarati", "Gurmukhi", "Kannada", "Malayalam", "Mongolian", "Oriya", "Sinhala", "Syriac", "Tamil", "Telugu"]
  .map((name) => `\\p{Script=${name}}`).join("");
// Joiners that are part of a letter or of an emoji.
const JOINER = `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])|(?<=[\\p{Extended_Pictographic}\\ufe0f\\u{1f3fb}-\\u{1f3ff}])\\u200d(?=\\p{Extended_Pictographic})`;
// Invisible characters and characters that change the direction of text. `visible` replaces them by their code points.
const HIDDEN = new RegExp(`(?!${JOINER})[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb]`, "gu");

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

export const percent = (p) => (p >= 0.995 ? "99+ %" : p < 0.005 ? "< 1 %" : `${Math.round(100 * p)} %`);

// "1 sentence", "2 sentences"
export const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

// "about 4 minutes", for a number of seconds
export function duration(seconds) {
  if (seconds < 45) return "less than a minute";
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `about ${minutes <= 1 ? "a minute" : `${minutes} minutes`}`;
  return `about ${Math.round(minutes / 60)} hours`;
}

export class Refused extends Error {
  constructor(message, status, value) {
    super(message);
    this.status = status;
    this.value = value;
  }
}

async function readResponse(request) {
  let response;
  try {
    response = await request;
  } catch {
    throw new Refused("The server does not answer. Your edits are kept in this browser.", 0, null);
  }
  const kind = response.headers.get("content-type") || "";
  const value = kind.includes("json") ? await response.json() : null;
  if (!response.ok) throw new Refused(value?.error?.message ?? `The server answered ${response.status}.`, response.status, value);
  return value;
}

export const get = (path) => readResponse(fetch(path, { headers: { accept: "application/json" } }));

export const post = (path, value = {}) =>
  readResponse(fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value) }));

export const upload = (path, file) =>
  readResponse(fetch(path, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file }));
