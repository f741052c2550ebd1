// The end: what was done, and what can be made of it.
import { byId, count, duration, get, make, percent, post } from "./dom.js";
import { colour, labels, say, store } from "./store.js";

let shown = false; // whether the summary is on the page
let actions = {}; // set by `listen`: functions that show sentences

// Show the summary in place of the sentence, or hide it.
export function toggle(on) {
  shown = on;
  byId("end").hidden = !on;
  byId("finish").setAttribute("aria-expanded", String(on));
  byId("stage").classList.toggle("ended", on);
  for (const id of ["labelrow", "second", "hint"]) byId(id).hidden = on;
  for (const id of ["accept", "skip", "flag"]) byId(id).disabled = on;
  if (on) fill();
}

async function fill() {
  try {
    const found = await get("api/summary");
    if (shown) draw(found);
  } catch (error) {
    say(error.message, true);
  }
}

function draw(found) {
  const { counts, seconds, agreement } = found;
  const spans = Object.values(found.labels).reduce((a, b) => a + b, 0);
  const card = (number, text) => make("div", { class: "fact" }, make("b", { text: number }), make("span", { text }));
  const most = Math.max(...Object.values(found.labels), 1);
  const types = make("table", { class: "types" }, make("caption", { class: "hidden", text: "Spans by label" }));
  for (const label of labels()) {
    const bar = make("i", { class: `typebar ${colour(label)}` });
    bar.style.width = `${(100 * found.labels[label]) / most}%`;
    types.append(make("tr", {}, make("th", { scope: "row", text: label }), make("td", { class: "num", text: found.labels[label].toLocaleString("en") }), make("td", { class: "wide" }, bar)));
  }
  const rest = [];
  if (counts.skipped) rest.push(make("button", { text: counts.skipped === 1 ? "Label the skipped sentence" : `Label the ${count(counts.skipped, "skipped sentence")}`, onclick: () => walkList("skipped", "Skipped") }));
  if (counts.flagged > counts.rejected) rest.push(make("button", { text: counts.flagged - counts.rejected === 1 ? "Look at the flagged sentence" : `Look at the ${count(counts.flagged - counts.rejected, "flagged sentence")}`, onclick: () => walkList("flagged", "Flagged") }));
  if (counts.done >= 10) rest.push(make("button", { id: "doubtful", text: "Check the 10 most doubtful", onclick: doubtful }));
  if (counts.open) rest.push(make("button", { class: "primary", text: "Back to labelling", onclick: () => actions.act(() => get("api/state")) }));
  byId("end").replaceChildren(
    make("h3", { class: "big", text: counts.open ? "So far" : "Everything is labelled" }),
    make("div", { class: "facts" },
      card(counts.done.toLocaleString("en"), counts.done === 1 ? "sentence" : "sentences"),
      card(spans.toLocaleString("en"), `${store.state.settings.kind === "spans" ? "span" : "label"}${spans === 1 ? "" : "s"}`),
      ...(seconds ? [card(seconds < 60 ? `${Math.round(seconds)} s` : duration(seconds).replace("about ", ""), "of your time")] : []),
      ...(agreement === null ? [] : [card(agreement === 1 ? "100 %" : percent(agreement), "of labels as the tagger proposed")])),
    types,
    make("h3", { text: "Export" }),
    make("div", { class: "row" }, ...store.state.exports.map((form) =>
      make("a", { class: "button", href: `api/export?format=${encodeURIComponent(form)}`, download: true, text: form }))),
    make("h3", { text: "Model" }),
    make("div", { class: "row" }, make("a", { class: counts.open || !counts.done ? "button" : "button primary", id: "savemodel", href: "api/model", download: "labelled.tagwise", text: "Save model" })),
    make("p", { class: "quiet", text: "A tagger trained on your labels, for tagwise tag, serve and annotate." }),
    ...(rest.length ? [make("h3", { text: "Next" }), make("div", { class: "row" }, ...rest)] : []),
  );
}

async function walkList(tab, message) {
  const found = await get(`api/list?tab=${tab}`);
  await actions.walkThrough(found.rows.map((one) => one.id), message);
}

async function doubtful(event) {
  event.target.disabled = true;
  try {
    const found = await post("api/mistakes", { most: 10 });
    await actions.walkThrough(found.suspects.map((one) => one.id), "Most doubtful first");
  } catch (error) {
    say(error.message, true);
  } finally {
    event.target.disabled = false;
  }
}

export function listen(all) {
  actions = all;
  byId("finish").addEventListener("click", () => {
    if (!store.state) return;
    const on = !shown || !store.state.sentence; // there is nothing else to show at the end
    say("");
    byId("sentence").hidden = byId("before").hidden = byId("after").hidden = on;
    toggle(on);
    actions.heading();
    if (!on) byId("sentence").focus({ preventScroll: true });
  });
}
