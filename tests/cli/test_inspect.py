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
