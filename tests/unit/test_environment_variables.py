"""Environment variables with invalid values: an error that gives the variable and its valid values."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tagwise as tw

ROOT = Path(__file__).parents[2]
#: A use of each variable, and a valid value.
USES = {
    "TAGWISE_SIMD": ("pass", "baseline"),
    "TAGWISE_PATH": ("pass", "log"),
    "TAGWISE_MEMORY": ("pass", "2.5"),
    "TAGWISE_MOST_THREADS": ("pass", "3"),
    "TAGWISE_CRFSUITE": ("pass", "1"),
    "TAGWISE_MAX_SENTENCE": ("tw.read(io.StringIO('a\\tB\\n\\n'), 'conll')", "1000"),
    "TAGWISE_MAX_EXPANSION": ("tw.read(io.BytesIO(gzip.compress(b'a\\tB\\n\\n')), 'conll')", "1000"),
    "TAGWISE_DATA": ("tw.load_corpus('conll2000')", None),
}
#: Any text is the name of a folder, which is created.
FREE = {"TAGWISE_CACHE"}
CODE = """
import gzip, io, sys
try:
    import tagwise as tw
    {use}
except Exception as error:
    kinds = [kind.__name__ for kind in type(error).__mro__]
    print("TagwiseError" in kinds, str(error))
"""


def output_of_use(variable: str, value: str) -> str:
    """Return the output of a use of the variable."""
    code = CODE.format(use=USES[variable][0])
    environment = {**os.environ, variable: value}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("variable", USES)
def test_invalid_values_are_rejected(variable: str) -> None:
    found = output_of_use(variable, "nonsense")
    assert found.startswith("True ")
    assert variable in found
    assert "nonsense" in found
    sound = USES[variable][1]
    if sound is not None:
        assert output_of_use(variable, sound) == ""


@pytest.mark.parametrize(
    ("variable", "value"),
    [("TAGWISE_MEMORY", "nan"), ("TAGWISE_MEMORY", "1,5"), ("TAGWISE_MOST_THREADS", "-1")],
)
def test_numbers_outside_their_range_are_refused(variable: str, value: str) -> None:
    assert output_of_use(variable, value).startswith("True ")
    assert output_of_use(variable, "") == ""


def test_changes_after_import_take_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = tw.CRF(max_iter=2).fit([["a", "b"] * 40], [["X", "Y"] * 40])
    monkeypatch.setenv("TAGWISE_MEMORY", "much")
    with pytest.raises(tw.exceptions.ParameterError, match="TAGWISE_MEMORY"):
        tagger.predict_kbest([["a", "b"] * 400], k=100_000)


def test_every_variable_of_the_sources_is_in_the_table() -> None:
    """Every variable in the sources is in the table or accepts any value."""
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "rust").rglob("*.rs")]
    found = {name for path in sources for name in re.findall(r"TAGWISE_[A-Z_]+", path.read_text())}
    assert found == USES.keys() | FREE
