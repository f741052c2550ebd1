"""Code on the pages of the documentation: its blocks, and a run of a page from top to bottom.

A page is one session: its `python` blocks share their names, and its commands (`sh`, and after `$ ` in `console`) share
a folder. The output shown on a page is compared with the actual output. Examples after `>>>` are compared as in
doctest. A `text` block directly after a `python` block, and the lines below a command of `console`, are compared line
by line and in order, ignoring numbers. A line `...` matches any lines. A marker directly before a block adds a
condition:

    <!-- not run: REASON -->       counted, never run, but its commands must exist
    <!-- needs: PACKAGE -->        run if the package is installed, in the session of make test-PACKAGE

Commands that create the files of a page and that readers do not need are in a comment of the page:

    <!-- run first:
    tagwise convert wnut17-ner:dev train.txt
    -->
"""

from __future__ import annotations

import configparser
import contextlib
import doctest
import importlib.util
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tagwise.apps.compare import PRESETS
from tools.shows import session

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples").rglob("*.md")),
)
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>not run|needs): (?P<value>[^\n]*?) -->\n)?"
    r"^(?P<indent> *)```(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
FIRST = re.compile(r"^<!-- run first:\n(?P<code>.*?)^-->$", re.MULTILINE | re.DOTALL)
COMMANDS = ("sh", "console")
RUN = ("python", *COMMANDS)
#: Data and drawings, which are parsed if there is a parser and never run.
DATA = ("text", "json", "ini", "dockerfile", "template", "mermaid")
#: Pages that `make shows` writes. The session and the notebooks have their own tests.
WRITTEN = ("docs/start/shell.md", "docs/start/notebook.md", "docs/howto/errors-notebook.md")
#: Pages whose Python is run and examined by tests/e2e/test_introductory_pages.py.
PROMISES = ("README.md", "docs/start/first-tagger.md")


@dataclass(frozen=True)
class Block:
    """Code block: its language, its code, its first line on the page, its marker, and the output shown for it."""

    language: str
    code: str
    line: int
    not_run: str = ""
    needs: str = ""
    shown: str | None = None  # output in the text block after a python block

    def is_runnable(self) -> bool:
        """Return whether this environment can run the block."""
        return not self.not_run and (not self.needs or importlib.util.find_spec(self.needs) is not None)


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page in order.

    >>> blocks("<!-- needs: torch -->\\n```python\\nx = 1\\n```\\n")[0].needs
    'torch'
    """
    found = sorted([*FENCE.finditer(text), *FIRST.finditer(text)], key=lambda match: match.start())
    out: list[Block] = []
    for match in found:
        line = text.count("\n", 0, match.start("code"))
        if match.re is FIRST:
            out.append(Block("sh", match["code"], line))
            continue
        indent, language = len(match["indent"]), match["language"]
        code = "".join(row[indent:] for row in match["code"].splitlines(keepends=True))
        before = out[-1] if out else None
        if language == "text" and before and before.language == "python":
            end = text.rfind("```", 0, match.start())
            if not text[end + 3 : match.start()].strip() and not before.code.startswith(">>>"):
                out[-1] = Block(**{**before.__dict__, "shown": code})
        fields = {"not run": "not_run", "needs": "needs"}
        marks = {fields[match["mark"]]: match["value"]} if match["mark"] else {}
        out.append(Block(language, code, line, **marks))
    return out


def inline(text: str) -> list[str]:
    """Return the tagwise commands in the text of a page, between backticks."""
    plain = FENCE.sub("", FIRST.sub("", text))
    return re.findall(r"`(tagwise [a-z][^`\n]*)`", plain)


def of(page: str) -> list[Block]:
    """Return the blocks of a page by its path."""
    return blocks((ROOT / page).read_text("utf-8"))


def indented(text: str) -> Iterator[int]:
    """Yield the lines that start an indented block, which has no language. Lines of lists are text."""
    plain = FENCE.sub(lambda match: "\n" * match[0].count("\n"), FIRST.sub("", text))
    item = False
    lines = plain.splitlines()
    for i, row in enumerate(lines):
        if re.match(r"\s*([-*]|\d+\.) ", row):
            item = True
        elif row.strip() and not row.startswith(" "):
            item = row.startswith(("!!!", "???"))
        if row.startswith("    ") and row.strip() and not item and (i == 0 or not lines[i - 1].strip()):
            yield i + 1


# --- commands -----------------------------------------------------------------------------------------------


def commands(block: Block) -> list[str]:
    """Return the commands of a shell block, with continuation lines and here-documents."""
    if block.language == "console":
        return session.commands(block.code)
    out: list[str] = []
    until = ""
    for row in block.code.splitlines():
        if out and (until or out[-1].endswith("\\")):
            out[-1] += "\n" + row
            until = "" if row == until else until
        elif row.strip() and not row.lstrip().startswith("#"):
            out.append(row)
            begun = re.search(r"<<\s*'?(\w+)'?", row)
            until = begun[1] if begun else ""
    return out


def words(command: str) -> list[list[str]]:
    """Return the words of each program of a pipe."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="|;&<>()")
    lexer.whitespace_split = True
    out: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|;&()"):
            out.append([])
        else:
            out[-1].append(word)
    return [part for part in out if part]


def unknown(command: str, options: Mapping[str, set[str]], targets: set[str]) -> list[str]:
    """Return the unknown names of a command: commands and options of tagwise, targets of make, modules, scripts.

    >>> unknown("tagwise tag x --frmat text | make sleep", {"tag": {"--format"}}, {"test"})
    ['tagwise tag --frmat', 'make sleep']
    """
    out = []
    for part in words(command):
        part = [word for word in part if not re.fullmatch(r"[A-Z_]+=.*", word)]
        if part[:1] == ["tagwise"] and len(part) > 1 and not part[1].startswith("-"):
            known = options.get(part[1])
            if known is None:
                out.append(f"tagwise {part[1]}")
                continue
            given = [word.split("=")[0] for word in part[2:] if re.match(r"--[a-z]|-[a-z]$", word)]
            out += [f"tagwise {part[1]} {word}" for word in given if word not in known]
            if (
                part[1] == "compare"
                and part[2:3]
                and re.fullmatch(r"[a-z][\w-]*", part[2])
                and part[2] not in PRESETS
            ):
                out.append(f"tagwise compare {part[2]}")
        elif part[:1] == ["make"]:
            out += [f"make {word}" for word in part[1:] if "=" not in word and word not in targets]
        elif part[:2] == ["python", "-m"] and part[2].startswith(("benchmarks", "tests", "tools")):
            at = ROOT / part[2].replace(".", "/")
            if not (at.with_suffix(".py").exists() or (at / "__main__.py").exists()):
                out.append(f"python -m {part[2]}")
        elif (
            part[:1] == ["python"] and part[1:2] and part[1].endswith(".py") and not (ROOT / part[1]).exists()
        ):
            out.append(f"python {part[1]}")
    return out


# --- a run --------------------------------------------------------------------------------------------------


def masked(text: str) -> list[str]:
    """Return the lines of a text without numbers, table borders and spacing, which vary between machines."""
    plain = re.sub(r"[+-]?\d[\d.,]*(e[+-]?\d+)?", "#", text)
    plain = re.sub(r"[─━╭╮╰╯│]+", "", plain)
    rows = (re.sub(r"(# ?)+", "#", re.sub(r"\s+", " ", line)).strip() for line in plain.splitlines())
    return [row for row in rows if row and row != "#"]


def missing(shown: str, printed: str) -> list[str]:
    """Return the lines shown on a page that were not printed, in order. `...` is skipped.

    >>> missing("F1 12.5\\n...\\nnew", "a\\nF1 13\\nb")
    ['new']
    """
    rest = iter(masked(printed))
    return [row for row in masked(shown) if row != "..." and row not in rest]


class Run:
    """Run of a page: the names of its Python code, a folder with its files, a home with the command `tagwise`."""

    def __init__(self, page: str, folder: Path) -> None:
        self.page = page
        self.names: dict[str, Any] = {"__name__": "__page__"}
        self.home, self.work = folder / "home", folder / "work"
        session.install(self.home)
        self.work.mkdir()
        self.done = 0

    def python(self, block: Block) -> None:
        """Run a Python block and compare its output with the page."""
        if block.code.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(
                block.code, self.names, self.page, self.page, block.line
            )
            report: list[str] = []
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            outcome = doctest.DocTestRunner(verbose=False, optionflags=flags).run(
                test, out=report.append, clear_globs=False
            )
            assert not outcome.failed, "".join(report)
            self.names = test.globs
        else:
            code = compile("\n" * block.line + block.code, str(ROOT / self.page), "exec")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, self.names)
            if block.shown is not None:
                lost = missing(block.shown, printed.getvalue())
                assert not lost, f"{self.page}:{block.line}: not printed: {lost}\n{printed.getvalue()}"
        self.done += 1

    def shell(self, block: Block) -> None:
        """Run the commands of a block. Each must succeed, unless the page shows its exit status."""
        parts = re.split(r"(?m)^\$ ", block.code)[1:] if block.language == "console" else []
        for i, command in enumerate(commands(block)):
            printed = session.run(command, self.work, self.home)
            shown = parts[i][len(command) + 1 :] if parts else ""
            context = f"{self.page}:{block.line}: {command}\n{printed}"
            assert ("[exit status" in printed) == ("[exit status" in shown), context
            lost = missing(shown, printed)
            assert not lost, f"{context}not printed: {lost}"
        self.done += 1

    def all(self, *languages: str) -> int:
        """Run the blocks of these languages that this environment can run, and return their number."""
        for block in of(self.page):
            if block.language in languages and block.is_runnable():
                self.python(block) if block.language == "python" else self.shell(block)
        return self.done


def parsed(block: Block) -> None:
    """Parse a block of data in its format."""
    if block.language == "json":
        for row in block.code.splitlines():
            json.loads(row)
    elif block.language == "ini":
        configparser.ConfigParser(strict=False, allow_no_value=True).read_string(block.code)


def needed(page: str) -> set[str]:
    """Return the packages that blocks of a page need."""
    return {block.needs for block in of(page) if block.needs}


def with_commands() -> list[str]:
    """Return the pages with commands to run."""
    if shutil.which("bash") is None:
        return []
    return [
        page
        for page in PAGES
        if page not in WRITTEN and any(b.language in COMMANDS and not b.not_run for b in of(page))
    ]


def counts() -> list[tuple[str, dict[str, int]]]:
    """Return the number of blocks of each page that run, need a package, and are not run."""
    out = []
    for page in PAGES:
        code = [block for block in of(page) if block.language in RUN]
        if code:
            found = {
                "python": sum(b.language == "python" and not b.not_run for b in code),
                "commands": sum(b.language in COMMANDS and not b.not_run for b in code),
                "needs": sum(bool(b.needs) for b in code),
                "not run": sum(bool(b.not_run) for b in code),
            }
            out.append((page, found))
    return out


def main() -> None:
    """List the pages and their blocks: `python -m tools.shows.pages`."""
    print(f"{'page':<34}{'python':>8}{'commands':>10}{'needs a package':>28}{'not run':>9}")
    for page, found in counts():
        print(
            f"{page:<34}{found['python']:>8}{found['commands']:>10}{found['needs']:>28}{found['not run']:>9}"
        )
    for page in PAGES:
        for block in of(page):
            if block.not_run:
                print(f"{page}:{block.line}: not run: {block.not_run}")


if __name__ == "__main__":
    main()
