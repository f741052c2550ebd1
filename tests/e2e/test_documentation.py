"""Every block of code on every page runs, or says why not; links lead somewhere; tables say what they are made of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shows import pages

ROOT = pages.ROOT
FILES = (*pages.PAGES, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
LINK = re.compile(r"\]\((?P<target>[^)\s]*)(?: \"[^\"]*\")?\)")


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in pages.PAGES
        if page not in pages.PROMISES
        and any(b.language == "python" and not b.not_run for b in pages.of(page))
    ],
)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the page's order, in one namespace, in an empty folder; what it shows is what it prints."""
    run = pages.Run(page, tmp_path)
    monkeypatch.chdir(run.work)
    monkeypatch.syspath_prepend(run.work)
    if not run.all("python"):
        pytest.skip(f"needs {', '.join(sorted(pages.needed(page)))}: make test-torch, test-ray, test-browser")


@pytest.mark.slow
@pytest.mark.parametrize("page", pages.with_commands())
def test_a_page_with_commands_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and Python, from top to bottom, in one folder."""
    run = pages.Run(page, tmp_path)
    monkeypatch.chdir(run.work)
    monkeypatch.syspath_prepend(run.work)
    assert run.all(*pages.RUN)


@pytest.mark.parametrize("page", pages.PAGES)
def test_every_block_says_what_it_is(page: str) -> None:
    """No block without a language, none by indent alone; what is not run has a reason; data can be read."""
    text = (ROOT / page).read_text("utf-8")
    assert not list(pages.indented(text)), "indented blocks have no language: fence them"
    for block in pages.blocks(text):
        where = f"{page}:{block.line}"
        assert block.language in pages.RUN + pages.DATA, f"{where}: language {block.language!r}"
        assert not block.not_run or len(block.not_run.split()) > 1, f"{where}: a mark without a reason"
        pages.parsed(block)


def test_commands_name_what_there_is() -> None:
    """Commands and options of tagwise, targets of make, modules and scripts, of blocks that are not run too."""
    from tagwise.cli import cli

    options = {
        name: {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
        | {"--help", "-h"}
        for name, command in cli.commands.items()
    }
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    wrong = []
    for page in pages.PAGES:
        found = [c for b in pages.of(page) if b.language in pages.COMMANDS for c in pages.commands(b)]
        for command in found + pages.inline((ROOT / page).read_text("utf-8")):
            wrong += [f"{page}: {name}" for name in pages.unknown(command, options, targets)]
    assert not wrong, "\n".join(wrong)


def test_blocks_that_are_not_run_are_few() -> None:
    """Of each page what runs and what does not: the list is printed, and at most one block in four stays out."""
    pages.main()
    found = [count for _, count in pages.counts()]
    run = sum(count["python"] + count["commands"] for count in found)
    left = sum(count["not run"] for count in found)
    print(f"{run} blocks run, {left} do not")
    assert left * 3 <= run


# --- links --------------------------------------------------------------------------------------------------


def prose(page: str) -> str:
    """A page without its code."""
    text = pages.FENCE.sub("", (ROOT / page).read_text("utf-8"))
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path: Path) -> set[str]:
    """The places of a page that a link can name, as Markdown makes them of headings."""
    out: set[str] = set()
    text = pages.FENCE.sub("", path.read_text("utf-8"))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        out.add(slug if slug not in out else f"{slug}_1")
    return out | set(re.findall(r"^::: ([\w.]+)", text, re.MULTILINE))


@pytest.mark.parametrize("page", FILES)
def test_links_lead_somewhere(page: str) -> None:
    """To files that are there, and to headings that they have; pictures too."""
    here = ROOT / page
    for match in LINK.finditer(prose(page)):
        target, _, anchor = match["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (here.parent / target).resolve() if target else here
        assert path.exists(), f"{page}: {match['target']}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page}: {match['target']}"
        if page.startswith("docs/") and target:
            assert ROOT / "docs" in path.parents, f"{page}: {match['target']} is no part of the site"


def test_addresses_are_those_that_are_listed() -> None:
    """Addresses on the network that the pages name stand in one list: nothing is fetched here, people look at it."""
    listed = set((ROOT / "tests" / "shows" / "addresses.txt").read_text("utf-8").split())
    found = {
        address.rstrip(".,)")
        for page in FILES
        for address in re.findall(r"https?://[^\s)>`\"'|]+", prose(page))
    }
    assert found == listed, f"new: {sorted(found - listed)}; gone: {sorted(listed - found)}"
