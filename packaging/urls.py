"""Make the links of README.md absolute and write [project.urls], for a release: `python packaging/urls.py URL REF`.

PyPI shows the README without the files next to it. The release workflow knows the address of the repository and runs
this before it builds. The files in the repository keep their relative links.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"""(?P<before>\]\(|\b(?:href|src)=")(?P<path>(?![a-z]+:|#|/)[^)"\s]+)""")
IMAGE = re.compile(r"\.(?:png|svg|gif|jpe?g)$")
PAGES = {
    "Source": "{url}",
    "Documentation": "{url}/blob/{ref}/docs/index.md",
    "Changelog": "{url}/blob/{ref}/CHANGELOG.md",
    "Issues": "{url}/issues",
}


def absolute(text: str, url: str, ref: str) -> str:
    """Return Markdown with absolute links: pages at `blob`, images at `raw`.

    >>> absolute('[a](docs/a.md#b) ![c](c.svg) <a href="LICENSE"> [d](https://d.org) [e](#f)', "https://h/o/r", "v1")
    '[a](https://h/o/r/blob/v1/docs/a.md#b) ![c](https://h/o/r/raw/v1/c.svg) <a href="https://h/o/r/blob/v1/LICENSE"> \
[d](https://d.org) [e](#f)'
    """

    def replaced(match: re.Match[str]) -> str:
        kind = "raw" if IMAGE.search(match["path"]) else "blob"
        return f"{match['before']}{url}/{kind}/{ref}/{match['path']}"

    return LINK.sub(replaced, text)


def with_urls(project: str, url: str, ref: str) -> str:
    """Return pyproject.toml with the table [project.urls].

    >>> print(with_urls("[project]\\nname = 'x'\\n\\n[project.scripts]\\n", "https://h/o/r", "v1").splitlines()[4])
    Source = "https://h/o/r"
    """
    if "[project.urls]" in project:
        raise SystemExit("pyproject.toml has [project.urls] already")
    lines = "".join(f'{name} = "{page.format(url=url, ref=ref)}"\n' for name, page in PAGES.items())
    return project.replace("[project.scripts]", f"[project.urls]\n{lines}\n[project.scripts]", 1)


def main(url: str, ref: str) -> None:
    """Rewrite README.md and pyproject.toml."""
    for name, new in (("README.md", absolute), ("pyproject.toml", with_urls)):
        path = ROOT / name
        path.write_text(new(path.read_text("utf-8"), url.rstrip("/"), ref), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
