"""Results for people to look at."""

from tagwise.report.html import write

__all__ = ["write"]
