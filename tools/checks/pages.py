"""Pages: every code block has a language, links resolve, commands and options exist."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

from tools.checks import ROOT, text
from tools.shows import notebook, pages, tables

FILES = (*pages.PAGES, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
LINK = re.compile(r"\]\((?P<target>[^)\s]*)(?: \"[^\"]*\")?\)")


def check_blocks() -> Iterator[str]:
    """Code blocks have a language, data parse, printed output is shown, blocks that are not run have a reason."""
    for page in pages.PAGES:
        yield from (
            f"{page}:{line}: indented block, use a fence with a language"
            for line in pages.indented(text(page))
        )
        for block in pages.of(page):
            where = f"{page}:{block.line}"
            if block.language not in pages.RUN + pages.DATA:
                yield f"{where}: unknown language {block.language!r}"
            if block.not_run and len(block.not_run.split()) < 2:
                yield f"{where}: marker without a reason"
            prints = block.language == "python" and re.search(r"^ *print\(", block.code, re.M)
            if prints and block.shown is None and not block.not_run and ">>>" not in block.code:
                yield f"{where}: prints, and its output is not shown"
            try:
                pages.parsed(block)
            except (ValueError, AssertionError) as error:
                yield f"{where}: {error}"
    found = [count for _, count in pages.counts()]
    run, left = (sum(c["python"] + c["commands"] for c in found), sum(c["not run"] for c in found))
    if left * 3 > run:
        yield f"{left} blocks are not run, only {run} are"
    if doctest.testmod(pages).failed:
        yield "doctests of tools/shows/pages.py fail"


def check_commands() -> Iterator[str]:
    """Commands and options of tagwise, targets of make, modules and scripts exist, also in blocks that are not run."""
    from tagwise.cli import cli

    options = {
        name: {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help", "-h"}
        for name, command in ((name, cli.load(name)) for name in cli.commands)
    }  # fmt: skip
    targets = set(re.findall(r"^([\w-]+):", text("Makefile"), re.M))
    for page in pages.PAGES:
        found = [c for b in pages.of(page) if b.language in pages.COMMANDS for c in pages.commands(b)]
        for command in found + pages.inline(text(page)):
            yield from (f"{page}: unknown {name}" for name in pages.unknown(command, options, targets))


def prose(page: str) -> str:
    """Return a page without its code and without the output of notebooks."""
    plain = re.sub(r'^<div class="output">.*$', "", pages.FENCE.sub("", text(page)), flags=re.M)
    return re.sub(r"`[^`\n]*`", "", plain)


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page, as Markdown derives them from headings."""
    out: set[str] = set()
    plain = pages.FENCE.sub("", path.read_text("utf-8"))
    for heading in re.findall(r"^#+ (.*)$", plain, re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", words).strip().lower())
        out.add(slug if slug not in out else f"{slug}_1")
    return out | set(re.findall(r"^::: ([\w.]+)", plain, re.M))


def check_links() -> Iterator[str]:
    """Links lead to existing files and headings, and pages of the site link only to the site."""
    for page in FILES:
        for match in LINK.finditer(prose(page)):
            target, _, anchor = match["target"].partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            path = ((ROOT / page).parent / target).resolve() if target else ROOT / page
            inside = not (page.startswith("docs/") and target) or ROOT / "docs" in path.parents
            known = not (anchor and path.suffix == ".md") or anchor in anchors(path)
            if not (path.exists() and inside and known):
                yield f"{page}: broken link {match['target']}"


def check_addresses() -> Iterator[str]:
    """Network addresses are in one list, which people review. Nothing is fetched."""
    listed = set(text("tools/shows/addresses.txt").split())
    found = {
        address.rstrip(".,)")
        for page in FILES
        for address in re.findall(r"https?://[^\s)>`\"'|]+", prose(page))
    }
    yield from (f"{address} is not listed" for address in sorted(found - listed))
    yield from (f"{address} is listed but not on any page" for address in sorted(listed - found))


def check_examples() -> Iterator[str]:
    """Each example is on docs/start/examples.md and has a README with its command."""
    for name in sorted(path.parent.name for path in (ROOT / "examples").glob("*/__main__.py")):
        for page in ("docs/start/examples.md", f"examples/{name}/README.md"):
            if f"make example NAME={name}" not in text(page):
                yield f"{page} does not name {name}"


def check_generated_pages() -> Iterator[str]:
    """Pages that are generated from the package and from notebooks are current."""
    yield from tables.outdated()
    yield from notebook.outdated()
    if doctest.testmod(tables).failed:
        yield "doctests of tools/shows/tables.py fail"


def check_environment_variables() -> Iterator[str]:
    """The page of environment variables has exactly the variables that the package and the core read."""
    name = re.compile(r"(?<!_)TAGWISE_[A-Z][A-Z_]*")
    sources = [*(ROOT / "python" / "tagwise").rglob("*.py"), *(ROOT / "rust" / "src").rglob("*.rs")]
    read = {found for path in sources for found in name.findall(path.read_text("utf-8"))}
    listed = set(name.findall(text("docs/reference/environment.md")))
    yield from (f"{variable} is not on docs/reference/environment.md" for variable in sorted(read - listed))
    yield from (f"{variable} is on the page, but nothing reads it" for variable in sorted(listed - read))
