"""Pictures of the labelling page for its reference: `python -m tools.shows.annotate_screenshots`.

Run it with the Python of the environment `browser` (`tools/environments.py`). It opens a text of which a part is
labelled, on three sizes of the screen, light and dark.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

#: Labelled sentences, with spans as [text|LABEL], and the others.
LABELLED = (
    "[Anna Kovacs|PER] moved from [Budapest|LOC] to [New York City|LOC] in 2019.",
    "She works for the [Red Cross|ORG], two streets from the park.",
    "[Peter Kovacs|PER] stayed in [Budapest|LOC] and teaches there.",
    "Last year, [Maria Lopez|PER] left [Lisbon|LOC] for [Harvard University|ORG].",
    '"We met in [Vienna|LOC]," said [Peter Kovacs|PER].',
    "[Siemens|ORG] and the [University of Vienna|ORG] paid for the trip.",
    "It rained all week.",
    "[John Stone|PER] of the [Red Cross|ORG] came from [Oslo|LOC].",
)
OPEN = (
    "Nobody had told the driver about the bridge.",
    "Maria Lopez flew from Lisbon to Vienna with John Stone, who works for Siemens.",
    "Anna Kovacs (of the Red Cross) didn't answer.",
    "The University of Vienna has a house in Lisbon.",
    "John Stone lives in New York City now.",
    "It's a long way from Oslo to Budapest!",
    "Peter Kovacs wrote to Harvard University.",
    "The train to Vienna was late again.",
    "They met Maria Lopez in Oslo.",
)
GUIDELINES = "# Guidelines\n\nLabel full names of people, places and organizations.\n"
SCREENS = {"desktop": (1280, 800), "tablet": (820, 1000), "phone": (390, 844)}


def rows(lines: tuple[str, ...], labelled: bool) -> list[str]:
    """Return the lines of a JSONL file with spans."""
    out = []
    for line in lines:
        text, spans = "", []
        for part in re.split(r"(\[[^|]+\|[A-Z]+\])", line):
            if part.startswith("[") and "|" in part:
                words, label = part[1:-1].split("|")
                spans.append([len(text), len(text) + len(words), label])
                part = words
            text += part
        out.append(
            json.dumps({"text": text, "spans": spans, "answer": "accept"} if labelled else {"text": text})
        )
    return out


def main() -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright
    from tests.web.browser import CHROMIUM, server, visit

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        posts, rules = Path(folder) / "posts.jsonl", Path(folder) / "rules.md"
        posts.write_text("\n".join(rows(LABELLED, True) + rows(OPEN, False)) + "\n", encoding="utf-8")
        rules.write_text(GUIDELINES, encoding="utf-8")
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        options = ("--labels", "PER,LOC,ORG", "--strategy", "order", "--guidelines", str(rules))
        with server(Path(folder) / "work", str(posts), *options) as (url, _):
            for name, (width, height) in SCREENS.items():
                for scheme in ("light", "dark"):
                    touch = {"has_touch": True, "is_mobile": True} if name == "phone" else {}
                    size = {"width": width, "height": height}
                    with visit(browser, url, viewport=size, color_scheme=scheme, **touch) as page:
                        page.click("#rows li:nth-child(2) button")
                        page.wait_for_function(
                            "n => document.getElementById('place').textContent.endsWith(n)",
                            arg=str(len(LABELLED) + 2),
                        )
                        page.screenshot(path=f"docs/pictures/annotate/annotate-{name}-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
