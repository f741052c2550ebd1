"""Notebooks without a server: run the cells of an .ipynb file in order and write their outputs into it.

The outputs of a cell are its printed text and the value of its last expression, as text and, if available, as HTML.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tagwise

PACKAGE = Path(tagwise.__file__).parent


def run_cell(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run one cell and return its outputs in the notebook format."""
    tree = ast.parse(source, f"<cell {number}>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<cell {number}>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<cell {number}>", "eval"), names)
    out: list[dict[str, Any]] = []
    if printed.getvalue():
        out.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines(shown(value))}
        if html := getattr(value, "_repr_html_", lambda: None)():
            data["text/html"] = lines(html)
        out.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})
    return out


def shown(value: Any) -> str:
    """Return a value as text: its str if the class defines one, otherwise its repr."""
    return repr(value) if type(value).__str__ is object.__str__ or isinstance(value, str) else str(value)


def lines(text: str) -> list[str]:
    """Return a text in the notebook format, without the path of the package on this machine."""
    return text.replace(f"{PACKAGE}{os.sep}", "").splitlines(keepends=True)


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of its cells, run in a separate namespace."""
    names: dict[str, Any] = {"__name__": "__notebook__"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        number += 1
        outputs = run_cell("".join(cell["source"]), names, number)
        cells.append({**cell, "execution_count": number, "outputs": outputs})
    return {**notebook, "cells": cells}


def read(path: Path) -> dict[str, Any]:
    """Read a notebook file."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def write(path: Path, notebook: dict[str, Any]) -> None:
    """Write a notebook as editors do."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


# --- pages --------------------------------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs"
#: Notebooks, and the pages of the site that show them.
PAGES = {"start/everyday.ipynb": "start/notebook.md", "howto/errors.ipynb": "howto/errors-notebook.md"}


def cells(book: dict[str, Any]) -> Iterator[str]:
    """Yield the cells of a notebook and their outputs as blocks of Markdown."""
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            yield source
            continue
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if html := "".join(data.get("text/html", "")):
                yield f'<div class="output">{" ".join(html.splitlines())}</div>'
            else:
                yield f"```text\n{''.join(data['text/plain']).rstrip()}\n```"


def page(name: str) -> str:
    """Return the page of a notebook."""
    title, *rest = cells(read(DOCS / name))
    link = f"Generated from a notebook, [{Path(name).name}]({Path(name).name}), which you can run yourself."
    return "\n\n".join([title.partition("\n")[0], link, title.partition("\n")[2].strip(), *rest]) + "\n"


def outdated() -> Iterator[str]:
    """Yield the pages that differ from their notebook."""
    for name, target in PAGES.items():
        path = DOCS / target
        if not path.exists() or path.read_text("utf-8") != page(name):
            yield f"docs/{target} is out of date, run python -m tools.shows.notebook"


def main() -> None:
    """Write the pages of all notebooks without running them."""
    for name, target in PAGES.items():
        (DOCS / target).write_text(page(name), "utf-8")


if __name__ == "__main__":
    main()
