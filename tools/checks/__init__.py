"""Checks of the repository: repeated statements agree, and names that are mentioned exist.

A check is a function without arguments that yields faults, each a line of text. Rules that are more than a comparison
have an example in their docstring. `make lint` runs both.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = ("figures", "imports", "names", "pages", "prose", "release", "typed", "workflows")


def text(name: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / name).read_text("utf-8")
