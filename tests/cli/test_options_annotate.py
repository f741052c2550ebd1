"""Every option of ``annotate`` changes the session as its help says. No server is started."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.annotate.guidelines import read_guidelines
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.session import Session
from tagwise.apps.annotate.simulate import Curve, Simulation
from tagwise.corpus import schemes

from .conftest import columns
from .options import DEV, TRAIN, Bench, cases, debug_row, fitted, invoke, row

#: The module. The attribute of that name in the package is the command.
MODULE = importlib.import_module("tagwise.cli.annotate")

debug_row("annotate", "absent.txt", "--work", "/nonexistent/absent")


def begun(bench: Bench, *args: object, folder: str = "w") -> dict[str, Any]:
    """Return the state of the session that the command opens, with the host and port it would be served at."""
    seen: dict[str, Any] = {}

    def run(session: Session, host: str, port: int) -> None:
        state, model = session.state(), session.learning.model
        seen.update(state, host=host, port=port, session=session, model=model, dev=session.dev)
        seen["tokens"] = [s.tokens for s in session.work.sentences]
        seen["saved"] = session.work.settings

    bench.patch.setattr(MODULE, "run", run)
    bench.ok("annotate", *args, "--work", bench.path(folder))
    return seen


@row("annotate", "corpus", "--work")
def corpus_and_work(bench: Bench) -> None:
    """The --work folder keeps the sentences and can be reopened. Default: a folder named after the file."""
    found = begun(bench, bench.train)
    assert found["tokens"] == TRAIN.tokens
    assert (bench.path("w") / "work.json").exists()
    assert begun(bench)["tokens"] == TRAIN.tokens
    assert invoke("annotate", "--work", bench.path("nothing")).exit_code == 2
    bench.patch.chdir(bench.folder)
    bench.ok("annotate", bench.test)
    assert Path("test.txt.annotate/work.json").exists()


@row("annotate", "--labels")
def labels(bench: Bench) -> None:
    """--labels adds label types to those of the file."""
    text = bench.path("t.txt", "Rosa runs\n")
    assert begun(bench, text, "--format", "text", "--labels", "A,B")["settings"]["labels"] == ["A", "B"]
    assert begun(bench, text, folder="v")["settings"]["labels"] == []


@row("annotate", "--model")
def model(bench: Bench) -> None:
    """--model proposes labels until a model has been trained. Default: no proposals."""
    given = bench.path("bare.txt", "\n".join(" ".join(s.tokens) for s in TRAIN) + "\n")
    tagger = tw.MIRA(features="word[0]\n", max_iter=2).fit(TRAIN.tokens, TRAIN.labels)
    found = begun(bench, given, "--format", "text", "--model", bench.saved(tagger, "mira.tagwise"))
    assert found["model"].predict(TRAIN.tokens) == tagger.predict(TRAIN.tokens)
    assert found["settings"]["labels"]
    assert begun(bench, given, "--format", "text", folder="v")["model"] is None
    assert fitted()


@row("annotate", "--map-labels")
def map_labels(bench: Bench) -> None:
    """--map-labels renames labels of the model. Its other labels do not become labels of the project."""
    given = bench.path("bare.txt", "Rosa runs\n")
    tagger = tw.MIRA(features="word[0]\n", max_iter=2).fit(
        [["Rosa", "runs", "Lund"]], [["B-person", "O", "B-place"]]
    )
    args = (given, "--format", "text", "--model", bench.saved(tagger, "mira.tagwise"))
    found = begun(bench, *args, "--map-labels", "person=PER")
    assert found["settings"]["labels"] == ["PER"]
    assert found["model"].predict([["Rosa"]]) == [["B-PER"]]
    assert begun(bench, *args, folder="v")["settings"]["labels"] == ["person", "place"]
    for wrong in ("person", "persn=PER", "person=X,place=X"):
        assert invoke("annotate", *args, "--map-labels", wrong, "--work", bench.path("x")).exit_code == 2
    assert invoke("annotate", given, "--map-labels", "a=b", "--work", bench.path("x")).exit_code == 2


@row("annotate", "--patterns")
def patterns(bench: Bench) -> None:
    """--patterns proposes labels for terms, and adds their label types. Default: no proposals."""
    given = bench.path("bare.txt", "Rosa runs\n")
    terms = bench.path("terms.tsv", "PER\trosa\n")
    found = begun(bench, given, "--format", "text", "--patterns", terms)
    assert [one["label"] for one in found["sentence"]["proposal"]] == ["PER"]
    assert found["settings"]["labels"] == ["PER"]
    assert begun(bench, given, "--format", "text", folder="v")["sentence"]["proposal"] == []
    wrong = bench.path("wrong.tsv", "rosa\n")
    assert invoke("annotate", given, "--patterns", wrong, "--work", bench.path("x")).exit_code == 2


@row("annotate", "--guidelines")
def guidelines(bench: Bench) -> None:
    """--guidelines shows a Markdown file. Default: guidelines.md of the folder, if there is one."""
    text = bench.path("rules.md", "# Rules\n")
    found = begun(bench, bench.train, "--guidelines", text)
    assert read_guidelines(found["session"].guidelines) == "# Rules\n"
    assert not begun(bench)["guidelines"]
    (bench.path("w") / "guidelines.md").write_text("own")
    assert read_guidelines(begun(bench)["session"].guidelines) == "own"
    absent = ("--guidelines", bench.path("absent.md"))
    assert invoke("annotate", bench.train, *absent, "--work", bench.path("x")).exit_code == 2


@row("annotate", "--dev")
def dev(bench: Bench) -> None:
    """--dev gives the held-out corpus. Default: none."""
    assert begun(bench, bench.train, "--dev", bench.dev)["dev"].labels == DEV.labels
    assert begun(bench, bench.train, folder="v")["dev"] is None


@row("annotate", "--fresh")
def fresh(bench: Bench) -> None:
    """--fresh ignores the labels of the file, so every sentence is open."""
    assert begun(bench, bench.train)["counts"]["given"] == len(TRAIN)
    assert begun(bench, bench.train, "--fresh", folder="v")["counts"]["open"] == len(TRAIN)


@row("annotate", "--review")
def review(bench: Bench) -> None:
    """--review shows the labels of the file as proposals, so every sentence is open."""
    found = begun(bench, bench.train, "--review")["counts"]
    assert (found["open"], found["given"]) == (len(TRAIN), 0)


@row("annotate", "--learner", "--features", "-f", "--strategy")
def learner(bench: Bench) -> None:
    """The work folder stores the learner, the features and the strategy."""
    plain = begun(bench, bench.train)["saved"]
    assert (plain.learner, plain.features, plain.strategy) == ("mira", "default", "margin")
    for short, name in (("-f", "v"), ("--features", "u")):
        args = ("--learner", "perceptron", short, "S1", "--strategy", "order")
        found = begun(bench, bench.train, *args, folder=name)["saved"]
        assert (found.learner, found.features, found.strategy) == ("perceptron", "S1", "order")
    for wrong in (("--learner", "hmm"), ("--strategy", "nothing")):
        assert invoke("annotate", bench.train, *wrong, "--work", bench.path("x")).exit_code == 2


@row("annotate", "--host", "--port")
def place(bench: Bench) -> None:
    """--host and --port set the address. Default: loopback only."""
    found = begun(bench, bench.train)
    assert (found["host"], found["port"]) == ("127.0.0.1", 8765)
    found = begun(bench, "--host", "0.0.0.0", "--port", 7)
    assert (found["host"], found["port"]) == ("0.0.0.0", 7)


@row("annotate", "--columns", "--label", "--format")
def reading(bench: Bench) -> None:
    """--columns, --label and --format control how files are read."""
    args = ("--columns", "word,pos,label", "--label", "pos", "--format", "conll")
    found = begun(bench, bench.train, *args)
    assert found["settings"]["kind"] == "tokens"
    assert set(found["settings"]["labels"]) == {"N", "V", "P", "D"}


@row("annotate", "--export", "--output", "-o")
def export(bench: Bench) -> None:
    """--export writes the labelled sentences to a file."""
    for option in ("-o", "--output"):
        out = bench.path(f"out{option}.jsonl")
        bench.ok("annotate", bench.train, "--work", bench.path("w"), "--export", "jsonl", option, out)
        assert [json.loads(line)["tokens"] for line in out.read_text().splitlines()] == TRAIN.tokens
    model = bench.path("out.tagwise")
    bench.ok("annotate", "--work", bench.path("w"), "--export", "model", "-o", model)
    assert set(tw.load(model).classes_) == {y for labels in TRAIN.labels for y in labels}
    assert (
        invoke("annotate", bench.train, "--work", bench.path("w"), "--export", "pdf", "-o", "x").exit_code
        == 2
    )
    assert invoke("annotate", bench.train, "--work", bench.path("w"), "--export", "conll").exit_code == 2


@row("annotate", "--agreement")
def agreement(bench: Bench) -> None:
    """--agreement reports the agreement of two files and lists the differences."""
    rows = [list(zip(s.tokens, s.labels)) for s in TRAIN]
    one = bench.path("one.txt", columns(rows))
    rows[1][0] = (rows[1][0][0], "B-ORG")
    two = bench.path("two.txt", columns(rows))
    assert "kappa 1.0000" in bench.ok("annotate", one, "--agreement", one).stdout
    output = bench.ok("annotate", one, "--agreement", two).stdout
    assert "sentence 2:" in output
    assert "B-ORG" in output
    assert "kappa 1.0000" not in output


@row("annotate", "--simulate", "--seeds")
def simulate(bench: Bench) -> None:
    """--simulate replays labelling once per seed. -o writes the chart."""
    bench.patch.setattr("tagwise.cli.simulate.SIMULATED", ("margin",))
    args = ("annotate", bench.train, "--simulate", "--dev", bench.test, "-f", "S1")
    once = bench.ok(*args)
    assert "| margin |" in once.stdout
    assert "| random |" in once.stdout
    twice = bench.ok(*args, "--seeds", 2, "-o", bench.path("c.svg"))
    assert twice.stderr.count("random: 20") == 2 * once.stderr.count("random: 20")
    assert bench.path("c.svg").read_text().startswith("<svg")
    assert invoke("annotate", bench.train, "--simulate").exit_code == 2


@row("annotate", "--growth", "--max-iter")
def played(bench: Bench) -> None:
    """--growth sets the step size, --max-iter the training length, --strategy the orders. Spans become IOB2."""
    seen: list[dict[str, Any]] = []

    def simulate(name: str, pool: tw.Corpus, test: tw.Corpus, make: Any, **settings: Any) -> Any:
        seen.append({**settings, "made": make(), "labels": {y for labels in pool.labels for y in labels}})
        return Simulation(name, 0.5, len(pool), 0.95, [Curve("random", 0, [20], [200], [0.5])])

    bench.patch.setattr("tagwise.apps.annotate.simulate.simulate", simulate)
    iob1 = [list(zip(s.tokens, schemes.convert(s.labels, None, "IOB1"))) for s in TRAIN]
    args = ("annotate", bench.path("iob1.txt", columns(iob1)), "--simulate", "--dev", bench.test)
    bench.ok(*args)
    bench.ok(*args, "--growth", 2.5, "--max-iter", 3, "--strategy", "span,order")
    bench.ok(*args, "--learner", "crf", "--max-iter", 3)
    plain, other, crf = seen
    assert (plain["growth"], plain["made"].max_iter) == (1.2, 8)
    assert plain["strategies"] == ("margin", "span", "committee", "diversity")
    assert (other["growth"], other["made"].max_iter, other["strategies"]) == (2.5, 3, ["span", "order"])
    assert isinstance(crf["made"], tw.CRF)
    assert any(y.startswith("B-") for y in plain["labels"])
    assert invoke(*args, "--growth", 1).exit_code == 2
    assert invoke(*args, "--strategy", "nothing").exit_code == 2


@pytest.mark.parametrize("case", cases("annotate"))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases("annotate")[case](bench)


def test_a_file_without_sentences_does_not_spoil_the_folder(bench: Bench) -> None:
    """It creates no project, and a project without sentences takes those of the next file."""
    wrong = invoke("annotate", bench.path("blank.txt", "\n\n"), "--work", bench.path("w"))
    assert wrong.exit_code == 2
    assert "no sentences found" in wrong.output + wrong.stderr
    assert not bench.path("w").exists()
    Work(bench.path("w")).close()
    assert begun(bench, bench.train)["counts"]["sentences"] == len(TRAIN)
