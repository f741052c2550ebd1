"""Write the current numbers into the outputs on pages: `python -m tools.shows.refresh [PAGE...]` (default: all pages).

The tests compare outputs without their numbers, which vary between machines. This replaces an output by the one that
was printed, if they differ in numbers, spacing and borders only.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

from tools.shows import pages, session
from tools.shows.pages import ROOT


class Refresh(pages.Run):
    """Run of a page that collects the printed outputs in place of the shown ones."""

    def __init__(self, page: str, folder: Path) -> None:
        super().__init__(page, folder)
        self.text = (ROOT / page).read_text("utf-8")
        self.at = 0

    def replace(self, shown: str, printed: str) -> None:
        """Replace the next occurrence of a shown output."""
        place = self.text.index(shown, self.at)
        same = pages.masked(shown) == pages.masked(printed)
        new = printed.rstrip("\n") + shown[len(shown.rstrip("\n")) :] if same else shown
        self.text = self.text[:place] + new + self.text[place + len(shown) :]
        self.at = place + len(new)

    def python(self, block: pages.Block) -> None:
        """Run a Python block and write its output."""
        if block.code.startswith(">>>") or block.shown is None:
            super().python(block)
            return
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code, self.page, "exec"), self.names)
        self.at = self.text.index(block.code, self.at) + len(block.code)
        self.replace(block.shown, printed.getvalue())

    def shell(self, block: pages.Block) -> None:
        """Run the commands of a block and write their outputs."""
        parts = re.split(r"(?m)^\$ ", block.code)[1:] if block.language == "console" else []
        for i, command in enumerate(pages.commands(block)):
            printed = session.run(command, self.work, self.home)
            shown = parts[i][len(command) + 1 :] if parts else ""
            if shown.strip():
                self.at = self.text.index(command, self.at) + len(command)
                self.replace(shown, printed)


def main(chosen: list[str]) -> None:
    """Refresh the chosen pages."""
    for page in chosen or [name for name in pages.PAGES if name not in pages.PROMISES + pages.WRITTEN]:
        if not any(block.shown or block.language == "console" for block in pages.of(page)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = Refresh(page, Path(folder))
            os.chdir(run.work)
            sys.path.insert(0, str(run.work))
            run.all(*pages.RUN)
            os.chdir(ROOT)
        path = ROOT / page
        if path.read_text("utf-8") != run.text:
            path.write_text(run.text, "utf-8")
            print(f"wrote {page}")


if __name__ == "__main__":
    main(sys.argv[1:])
