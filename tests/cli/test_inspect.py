"""``tagwise inspect`` and ``tagwise bench``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tagwise as tw
from tests.foreign.samples import CRFPP_TEXT, WAPITI
from tests.foreign.test_model_files import lcrf

from .conftest import Run


def test_inspect_shows_the_rounds_of_a_boosted_model(
    run: Run, small: tuple[tw.Corpus, tw.Corpus], model: Path, tmp_path: Path
) -> None:
    boosted = tw.Boosting(features="S1", rounds=12, max_length=10, features_per_round=1).fit(small[0])
    boosted.save(tmp_path / "b.tagwise")
    result = run("inspect", tmp_path / "b.tagwise", "--top", 3, "--plot", tmp_path / "b.svg")
    assert result.exit_code == 0
    assert "chosen features" in result.stdout
    assert "8 more" in result.stdout
    assert (tmp_path / "b.svg").read_text().count("<polyline") == 2
    value = json.loads(run("inspect", tmp_path / "b.tagwise", "--json").stdout)
    assert [r["step"] for r in value["rounds"]] == [r.step for r in boosted.rounds_]
    assert run("inspect", model, "--plot", tmp_path / "no.svg").exit_code == 2


@pytest.mark.parametrize(
    ("data", "program"), [(lcrf(), "CRFsuite"), (WAPITI, "Wapiti"), (CRFPP_TEXT, "CRF++")]
)
def test_inspect_of_other_programs_models_names_no_parameters(
    run: Run, tmp_path: Path, data: bytes, program: str
) -> None:
    """Their files do not say how they were trained, so nothing is said of it; nor after they were converted."""
    path, ours = tmp_path / "model", tmp_path / "model.tagwise"
    path.write_bytes(data)
    tw.load(path).save(ours)
    for file in (path, ours):
        shown = run("inspect", file).stdout
        assert program in shown
        assert "max_iter" not in shown
