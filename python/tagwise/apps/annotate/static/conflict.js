// A sentence that was changed elsewhere: both versions, and a choice between them.
import { byId, make } from "./dom.js";
import { phrase } from "./store.js";

export function hide() {
  byId("conflict").hidden = true;
}

// Show both versions. `mine` are spans of the editor, `theirs` the sentence as the server has it.
export function show(title, mine, theirs, keepMine, takeTheirs) {
  const box = byId("conflict");
  const labelled = theirs.spans ?? [];
  const content = theirs.spans ? phrase(theirs, labelled) : make("span", { class: "quiet", text: "not labelled" });
  const version = (name, content, text, action) => make("div", { class: "version" },
    make("h3", { text: name }), make("p", {}, content), make("button", { text, onclick: () => (hide(), action()) }));
  box.replaceChildren(
    make("p", {}, make("b", { text: title })),
    make("div", { class: "versions" },
      version("Yours", phrase(theirs, mine.map(({ begin, end, label }) => [begin, end, label])), "Keep mine", keepMine),
      version("The other", content, "Use the other", takeTheirs)),
  );
  box.hidden = false;
  box.querySelector("button").focus();
}
