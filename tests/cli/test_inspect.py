"""``tagwise inspect`` and ``tagwise bench``."""

from __future__ import annotations

from pathlib import Path

import pytest

import tagwise as tw
from tests.foreign.samples import CRFPP_TEXT, WAPITI
from tests.foreign.test_model_files import lcrf

from .conftest import Run


@pytest.mark.parametrize(
    ("data", "program"), [(lcrf(), "CRFsuite"), (WAPITI, "Wapiti"), (CRFPP_TEXT, "CRF++")]
)
def test_inspect_shows_no_parameters_of_foreign_models(
    run: Run, tmp_path: Path, data: bytes, program: str
) -> None:
    """Model files of other programs do not record training parameters, so none are shown, even after conversion."""
    path, ours = tmp_path / "model", tmp_path / "model.tagwise"
    path.write_bytes(data)
    tw.load(path).save(ours)
    for file in (path, ours):
        shown = run("inspect", file).stdout
        assert program in shown
        assert "max_iter" not in shown


def test_inspect_shows_only_parameters_that_were_changed(run: Run, tmp_path: Path) -> None:
    tw.CRF(features="S1", max_iter=7).fit([["a", "b"]], [["A", "B"]]).save(tmp_path / "m.tagwise")
    shown = run("inspect", tmp_path / "m.tagwise").stdout
    assert "max_iter" in shown
    for name in ("optimizer", "min_count", "start_end"):
        assert name not in shown


def test_paths_of_pretrained_taggers_are_on_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a terminal that is narrower than the path."""
    path = tmp_path / ("x" * 120 + ".tagwise")
    path.touch()
    monkeypatch.setattr("tagwise.apps.pretrained.TaggerInfo.path", lambda self: path)
    monkeypatch.setattr("tagwise.apps.pretrained.TaggerInfo.kept", lambda self: None)
    assert f"file        {path}\n" in run("pretrained").stdout


def test_paths_of_models_are_on_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    path = tmp_path / ("x" * 120 + ".tagwise")
    tw.CRF(features="S1", max_iter=7).fit([["a", "b"]], [["A", "B"]]).save(path)
    assert f"file      {path} (" in run("inspect", path).stdout


def test_labels_are_side_by_side_if_the_terminal_is_wide(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of twenty labels takes a fraction of the lines in a wide terminal."""
    labels = [f"L{i}" for i in range(20)]
    tw.CRF(features="S1", max_iter=7).fit([[y.lower() for y in labels]], [labels]).save(tmp_path / "m")
    lines = {}
    for width in (30, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = run("inspect", tmp_path / "m", "--top", 2).stdout
        assert all(label in shown for label in labels)
        lines[width] = shown.count("\n")
    assert lines[200] < lines[30] / 2
