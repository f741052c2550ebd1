"""Unusable input is rejected with one line that names it, before any file is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tagwise as tw

from .conftest import environment
from .options import TEST, TRAIN, Bench, invoke, own_features

SMALL = {"a": (TRAIN, TEST)}
QUICK = {"max_iter": 3}

#: A call and its message. Files: EMPTY has no sentences, BARE has no labels, GOOD is the bench's training file.
CALLS = {
    "train EMPTY -o OUT": "EMPTY: the file has no sentences",
    "train GOOD --dev EMPTY -o OUT": "EMPTY: the file has no sentences",
    "eval MODEL EMPTY": "EMPTY: the file has no sentences",
    "eval EMPTY EMPTY": "EMPTY: the file has no sentences",
    "errors MODEL EMPTY": "EMPTY: the file has no sentences",
    "compare --train GOOD --test EMPTY": "EMPTY: the file has no sentences",
    "train BARE -o OUT": "BARE: no column is the label. The file was read as raw with the columns word",
    "compare --train GOOD --test BARE": "BARE: no column is the label",
    "train wnut17-nre -o OUT": "did you mean 'wnut17-ner'?",
    "train GOOD -o OUT --learner perceptron --loss exp": "for --loss: perceptron has no parameter 'loss'",
    "train GOOD -o OUT --seed -1": "for --seed: random_state=-1",
    "train GOOD -o OUT --path l2=1,x": "for --path: l2='x'",
    "train GOOD -o OUT --set max_itr=3": "(did you mean 'max_iter'?)",
    "compare --train GOOD --test GOOD --report no/such.html": "for --report: no/such.html: cannot be written",
    "compare --train GOOD --test GOOD --learner crf --against mira": "learner 'mira' is not compared. Use one of crf",
}


@pytest.mark.parametrize("call", CALLS)
def test_unusable_input_prints_one_line_and_writes_no_file(bench: Bench, call: str) -> None:
    """Exit status 2, one line on stderr, nothing on stdout, no new file."""
    files = {
        "EMPTY": bench.path("empty.txt", "\n\n"),
        "BARE": bench.path("bare.txt", "a b c\nd e\n"),
        "GOOD": bench.train,
        "MODEL": bench.model,
        "OUT": bench.path("out.tagwise"),
    }
    before = sorted(bench.folder.rglob("*"))
    result = invoke(*(files.get(word, word) for word in call.split()))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    message = CALLS[call]
    for name, path in files.items():
        message = message.replace(name, str(path))
    assert message in result.stderr
    assert sorted(bench.folder.rglob("*")) == before


def test_compare_accepts_feature_sums_and_functions(bench: Bench) -> None:
    """Each feature set is a row under a short name with its own scores, also on the command line."""
    total = "S1" + tw.Gazetteer(["Lund"], name="towns") + tw.Regex("small", "[a-z]+") + own_features
    table = tw.compare(["crf"], corpus=SMALL, features=["S1", total, own_features], params=QUICK)
    assert [row.features for row in table] == [
        "S1",
        "S1+gazetteer:towns+regex:small+own_features",
        "own_features",
    ]
    for row, features in zip(table, ("S1", total, own_features)):
        tagger = tw.CRF(features=features, max_iter=3).fit(TRAIN)
        assert (row.accuracy, row.nonzero) == (tagger.evaluate(TEST).accuracy, tagger.n_nonzero_)
    towns = bench.path("towns.txt", "Lund\n")
    spelled = f"S1+gazetteer:{towns}+function:{own_features.__module__}:own_features"
    call = (
        "compare",
        "--train",
        bench.train,
        "--test",
        bench.test,
        "--learner",
        "crf",
        "-f",
        spelled,
        "--workers",
        0,
    )
    assert "S1+gazetteer:towns+own_features" in bench.ok(*call, "--max-iter", 3, "--fresh").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "S1"}, r"expected a list of feature sets: \['S1'\]"),
        ({"features": "S1" + tw.Regex("x", "a")}, "expected a list of feature sets"),
        (
            {"features": [tw.Features("S1", tw.Regex("x", p)) for p in "ab"]},
            "two sets have the name 'S1.regex:x'",
        ),
        ({"features": ["S1"], "against": "mira"}, "learner 'mira' is not compared. Use one of crf"),
    ],
)
def test_invalid_comparison_arguments_are_rejected(options: dict[str, object], message: str) -> None:
    with pytest.raises(tw.exceptions.ParameterError, match=message):
        tw.compare(["crf"], corpus=SMALL, params=QUICK, **options)  # type: ignore[arg-type]


def test_compare_tests_against_a_learner_with_a_given_loss() -> None:
    table = tw.compare(
        ["crf"], corpus=SMALL, features=["S1"], losses=["log", "exp"], params=QUICK, against="crf log"
    )
    assert [entry["p"] is None for entry in table.summary()] == [True, False]


SCRIPT = """
import tagwise as tw

def own(sentence):
    return [[str(len(token))] for token in sentence]

corpus = tw.Corpus.from_lists([["a", "bb"], ["cc", "d"]], [["X", "Y"], ["Y", "X"]])
{guard}
    print(tw.compare(["crf"], corpus={{"a": (corpus, corpus)}}, features=[own], params={{"max_iter": 3}}, workers=1))
"""


@pytest.mark.parametrize("guarded", [True, False])
def test_feature_functions_of_a_script_need_a_main_guard(tmp_path: Path, guarded: bool) -> None:
    """Worker processes import the script. Without the guard they would run it, and the error shows the guard."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(guard="if __name__ == '__main__':" if guarded else "if True:"))
    done = subprocess.run(
        [sys.executable, script], env=environment(), capture_output=True, text=True, timeout=600
    )
    assert (done.returncode == 0) is guarded, done.stderr
    assert ("crf" in done.stdout) if guarded else ("if __name__ == '__main__':" in done.stderr)
