"""Smoke test of an installed tagwise: train, save, load, tag, explain. Uses only the standard library.

    python -m venv empty && empty/bin/pip install tagwise-*.whl
    empty/bin/python -I packaging/try_wheel.py

With -I Python does not import from the clone, so that the installed package is tested.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

from tagwise.estimators import LEARNERS

SENTENCE = ["The", "cat", "sat", "on", "the", "mat", "."]


def check_package(folder: Path) -> None:
    """Test the Python package: a trained model predicts the same after saving and loading."""
    begin = time.perf_counter()
    import tagwise as tw

    print(
        f"import {time.perf_counter() - begin:.2f} s, tagwise {tw.__version__} from {Path(tw.__file__).parent}"
    )
    assert tw.__version__ == metadata.version("tagwise"), metadata.version("tagwise")
    train, _, test = tw.load_corpus("ewt-pos")
    tagger = tw.CRF(features="default", max_iter=20).fit(train[:2000])
    (labels,) = tagger.predict([SENTENCE])
    print(*(f"{word}/{label}" for word, label in zip(SENTENCE, labels)))
    assert (labels[0], labels[-1]) == ("DT", "."), labels
    accuracy = tw.evaluate(test, tagger.predict(test)).accuracy
    print(f"accuracy on test {accuracy:.4f}")
    assert accuracy > 0.8
    path = folder / "pos.tagwise"
    tagger.save(path)
    loaded = tw.load(path)
    assert loaded.predict(test) == tagger.predict(test)
    print(loaded.explain(SENTENCE))
    for name in LEARNERS:
        learner = LEARNERS[name](features="S1").fit(train[:20])
        assert len(learner.predict([SENTENCE])[0]) == len(SENTENCE), name
    print("learners:", *LEARNERS)


def check_command(folder: Path) -> None:
    """Test the installed command line with that model, and with one that it trains."""
    script = shutil.which("tagwise", path=str(Path(sys.executable).parent))
    assert script is not None, f"no command tagwise next to {sys.executable}"
    command = [script]
    version = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert version == f"tagwise {metadata.version('tagwise')}", version
    model, other = str(folder / "pos.tagwise"), str(folder / "other.tagwise")
    options = ["--features", "S2", "--set", "max_iter=5", "--quiet", "--output", other]
    subprocess.run([*command, "train", "wnut17-ner:dev", *options], check=True)
    subprocess.run([*command, "eval", other, "wnut17-ner:test"], capture_output=True, check=True)
    done = subprocess.run(
        [*command, "tag", model, "--format", "text"],
        input=" ".join(SENTENCE) + "\n",
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    print(done.stdout.strip())
    assert len(done.stdout.split()) == len(SENTENCE)
    subprocess.run([*command, "explain", model, " ".join(SENTENCE)], capture_output=True, check=True)


def main() -> None:
    """Run all tests in a temporary folder."""
    print(platform.platform(), platform.python_implementation(), platform.python_version())
    print(*sorted(f"{found.metadata['Name']}=={found.version}" for found in metadata.distributions()))
    with tempfile.TemporaryDirectory() as folder:
        check_package(Path(folder))
        check_command(Path(folder))
    print("ok")


if __name__ == "__main__":
    main()
