"""Update the pages that are generated, and the output of notebooks and the shell session: `python -m tools.shows`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tools.shows import notebook, session, tables

DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    tables.main()
    with tempfile.TemporaryDirectory(prefix="tagwise-shows-") as folder:
        page = DOCS / "start" / "shell.md"
        page.write_text(session.made(page.read_text("utf-8"), Path(folder)), "utf-8")
        os.environ["TAGWISE_CACHE"] = str(Path(folder) / "cache")
        before = os.getcwd()
        os.chdir(folder)
        try:
            for book in sorted(DOCS.rglob("*.ipynb")):
                notebook.write(book, notebook.run(notebook.read(book)))
        finally:
            os.chdir(before)
    notebook.main()


if __name__ == "__main__":
    main()
