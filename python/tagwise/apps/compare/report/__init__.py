"""Reports of comparisons: an HTML page, charts as SVG and tables of boosting rounds."""

from tagwise.apps.compare.report.html import write

__all__ = ["write"]
