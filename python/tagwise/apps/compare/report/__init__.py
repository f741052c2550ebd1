"""Results for people to look at."""

from tagwise.apps.compare.report.html import write

__all__ = ["write"]
