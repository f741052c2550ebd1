"""Animated picture of the labelling page: `python -m tools.shows.annotate_animation --pillow PYTHON`.

Run it with the Python of the environment `browser` (`tools/environments.py`). It labels the sentences of a short text
in Chromium, takes a screenshot of each step, and writes them as a GIF. `--pillow` is a Python that has Pillow, which
the environment `browser` does not have. The script draws the mouse pointer, because screenshots have none.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SENTENCES = (
    "Anna Kovacs moved from Budapest to New York City.",
    "Peter Kovacs stayed in Budapest.",
    "Maria Lopez flew from Lisbon to Vienna.",
    "Peter Kovacs met Maria Lopez in Vienna.",
    "Anna Kovacs lives in New York City.",
    "Maria Lopez moved to Budapest.",
)
SIZE = {"width": 1000, "height": 640}
#: Script that adds a mouse pointer to the page, which `move` places.
POINTER = """() => {
  const pointer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  pointer.id = "pointer";
  pointer.setAttribute("viewBox", "0 0 16 24");
  Object.assign(pointer.style, { position: "fixed", width: "20px", zIndex: 9, pointerEvents: "none", left: "-99px" });
  const path = document.createElementNS(pointer.namespaceURI, "path");
  path.setAttribute("d", "M1 1v18l4.5-4 3 7 3-1.300-3-6.700h6z");
  path.setAttribute("fill", "#111");
  path.setAttribute("stroke", "#fff");
  pointer.append(path);
  document.body.append(pointer);
}"""
#: Program that writes images as an animation: arguments are a JSON list of [file, milliseconds] and the output.
WRITE = """
import json, sys
from PIL import Image
frames = json.loads(sys.argv[1])
images = [Image.open(name).convert("RGB") for name, _ in frames]
width, height = images[0].size
every = Image.new("RGB", (width, height * len(images)))
for k, image in enumerate(images):
    every.paste(image, (0, k * height))
palette = every.quantize(256, dither=Image.Dither.NONE)
images = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
images[0].save(sys.argv[2], save_all=True, append_images=images[1:], duration=[ms for _, ms in frames], loop=0,
               optimize=True)
"""


class Recorder:
    """Takes screenshots of a page, each with the milliseconds for which it is shown."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.frames: list[tuple[str, int]] = []

    def take(self, milliseconds: int) -> None:
        """Add a picture of the page as it is."""
        path = self.folder / f"{len(self.frames):03d}.png"
        self.page.screenshot(path=str(path))
        self.frames.append((str(path), milliseconds))

    def move(self, selector: str, steps: int = 3, milliseconds: int = 90) -> None:
        """Move the pointer to an element."""
        box = self.page.locator(selector).first.bounding_box()
        goal = (box["x"] + box["width"] / 2, box["y"] + 0.6 * box["height"])
        begin = getattr(self, "place", (SIZE["width"] / 2, SIZE["height"] * 0.75))
        for k in range(1, steps + 1):
            x, y = (a + (b - a) * k / steps for a, b in zip(begin, goal))
            self.page.evaluate(
                "([x, y]) => Object.assign(document.getElementById('pointer').style, "
                "{ left: `${x}px`, top: `${y}px` })",
                [x, y],
            )
            self.page.mouse.move(x, y)
            self.take(milliseconds)
        self.place = goal

    def accept(self) -> None:
        """Press Enter and wait until the next sentence, the list and the summary are shown."""
        before = self.page.inner_text("#counts").split()[0]
        self.page.keyboard.press("Enter")
        self.page.wait_for_function(
            "n => !document.getElementById('counts').textContent.startsWith(n)", arg=before
        )


def record(page: Any, folder: Path) -> list[tuple[str, int]]:
    """Label the sentences, and return the pictures."""
    page.evaluate(POINTER)
    film = Recorder(page, folder)
    film.take(900)
    for label, word in (("PER", "#t0"), ("LOC", "#t4"), ("LOC", "#t6")):
        button = f"#labels button:has-text('{label}')"
        if page.locator(f"{button}[aria-pressed=true]").count() == 0:
            film.move(button)
            page.click(button)
            film.take(300)
        film.move(word)
        page.dblclick(word)
        film.take(450)
    film.take(500)
    film.accept()
    page.wait_for_function("() => document.querySelectorAll('#rows .mini').length > 2")
    film.take(1400)  # proposals of the tagger after one sentence
    for k in range(1, len(SENTENCES)):
        correct(page, film)
        film.accept()
        if page.locator("#end:not([hidden])").count():
            break
        page.wait_for_function("() => document.querySelector('#rows .mini')")
        film.take(700 if k > 1 else 1000)
    page.wait_for_selector("#end .facts")
    film.take(1800)
    return film.frames


def correct(page: Any, film: Recorder) -> None:
    """Label the names that the tagger has missed by a double click, and remove other spans."""
    names = {"Anna Kovacs": "PER", "Peter Kovacs": "PER", "Maria Lopez": "PER"}
    names |= dict.fromkeys(("Budapest", "New York City", "Lisbon", "Vienna"), "LOC")
    while True:
        words = page.eval_on_selector_all("#sentence [data-t]", "found => found.map(e => e.textContent)")
        text = " ".join(words)
        spans = page.eval_on_selector_all(
            "#sentence .span",
            "found => found.map(e => [e.querySelector('[data-t]').id, "
            "[...e.querySelectorAll('[data-t]')].map(t => t.textContent).join(' '), "
            "e.querySelector('.chip').firstChild.textContent])",
        )
        wrong = [one for one in spans if names.get(one[1]) != one[2]]
        missing = [
            name for name in names if name in text and [name, names[name]] not in [one[1:] for one in spans]
        ]
        if not wrong and not missing:
            return
        page.keyboard.press("Escape")
        if wrong:
            film.move(f"#{wrong[0][0]}")
            page.click(f"#{wrong[0][0]}")
            page.click("#removespan")
        else:
            label = names[missing[0]]
            page.click(f"#labels button:has-text('{label}')")
            first = words.index(missing[0].split()[0])
            film.move(f"#t{first}")
            page.dblclick(f"#t{first}")
        film.take(450)


def main() -> None:
    """Record the page and write the animation."""
    from playwright.sync_api import sync_playwright
    from tests.web.browser import CHROMIUM, server, visit

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pillow", metavar="PYTHON", default=sys.executable, help="a Python that has Pillow")
    parser.add_argument("-o", "--output", default="docs/pictures/annotate.gif")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        text = Path(folder) / "posts.txt"
        text.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        options = ("--labels", "PER,LOC", "--strategy", "order")
        with (
            server(Path(folder) / "work", str(text), *options) as (url, _),
            visit(browser, url, viewport=SIZE, color_scheme="light") as page,
        ):
            frames = record(page, Path(folder))
        browser.close()
        subprocess.run([given.pillow, "-c", WRITE, json.dumps(frames), given.output], check=True)
    size = Path(given.output).stat().st_size
    seconds = sum(ms for _, ms in frames) / 1e3
    print(f"{given.output}: {len(frames)} pictures, {seconds:.1f} s, {size / 1e6:.2f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
