"""Parser of CRFsuite's text dump of a model."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SECTIONS = ("FILEHEADER", "LABELS", "ATTRIBUTES", "TRANSITIONS", "STATE_FEATURES")
_FEATURE = re.compile(r"\(\d+\) (.*) --> (.*): ([+-]?(?:\d+\.\d+|inf|nan))", re.DOTALL)


class ParsedDump:
    """Content of a model, as returned by `Tagger.info`.

    Attributes:
        header: Fields of the file header.
        labels: Number of each label.
        attributes: Number of each attribute.
        transitions: Weights by (from, to).
        state_features: Weights by (attribute, label).
    """

    def __init__(self) -> None:
        self.header: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.attributes: dict[str, str] = {}
        self.transitions: dict[tuple[str, str], float] = {}
        self.state_features: dict[tuple[str, str], float] = {}


class CRFsuiteDumpParser:
    """Parser of the text of `Tagger.dump`. Feed it line by line and read `result`."""

    def __init__(self) -> None:
        self.state: str | None = None
        self.result = ParsedDump()

    def feed(self, line: str) -> None:
        """Parse the next line."""
        line = line.lstrip().rstrip("\r\n")
        if not line:
            return
        head = re.fullmatch(r"(\w+) = \{", line)
        if head is not None and head[1] in _SECTIONS:
            self.state = head[1]
        elif line == "}":
            self.state = None
        elif self.state is not None:
            getattr(self, f"parse_{self.state}")(line)

    def _named(self, line: str, into: dict[str, str]) -> None:
        key, _, value = line.partition(": ")
        into[value] = key.strip()

    def parse_FILEHEADER(self, line: str) -> None:
        """Parse `key: value`."""
        key, _, value = line.partition(": ")
        self.result.header[key] = value

    def parse_LABELS(self, line: str) -> None:
        """Parse `id: label`."""
        self._named(line, self.result.labels)

    def parse_ATTRIBUTES(self, line: str) -> None:
        """Parse `id: attribute`."""
        self._named(line, self.result.attributes)

    def _feature(self, line: str, sources: Mapping[str, str], into: dict[tuple[str, str], float]) -> None:
        found = _FEATURE.fullmatch(line)
        if found is None:
            raise ValueError(f"expected (type) from --> to: weight, found {line!r}")
        source, target = found[1], found[2]
        parts = f"{source} --> {target}".split(" --> ")
        for i in range(1, len(parts)):  # names can contain the arrow
            before, after = " --> ".join(parts[:i]), " --> ".join(parts[i:])
            if before in sources and after in self.result.labels:
                source, target = before, after
                break
        into[source, target] = float(found[3])

    def parse_TRANSITIONS(self, line: str) -> None:
        """Parse `(1) label --> label: weight`."""
        self._feature(line, self.result.labels, self.result.transitions)

    def parse_STATE_FEATURES(self, line: str) -> None:
        """Parse `(0) attribute --> label: weight`."""
        self._feature(line, self.result.attributes, self.result.state_features)
