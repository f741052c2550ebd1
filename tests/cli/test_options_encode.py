"""Every option of ``encode`` changes the outcome as its help says."""

from __future__ import annotations

from typing import Any

import pytest

import tagwise as tw

from .options import DEV, TRAIN, Bench, cases, debug_row, invoke, row

debug_row("encode", "absent.txt", "-o", "enc")


def encoded(bench: Bench, *args: object, name: str = "enc") -> tw.Shards:
    """Return the shards that a command writes."""
    bench.ok("encode", bench.train, "-o", bench.path(name), "-q", "-f", "S1", *args)
    return tw.Shards(bench.path(name))


def manifest(bench: Bench, *files: Any, **options: Any) -> dict[str, Any]:
    """Return the manifest of shards written by `tw.encode`. It does not depend on the output folder."""
    found = tw.encode(files or bench.train, bench.path("expected"), **{"features": "S1", **options})
    return found.manifest


@row("encode", "files")
def files(bench: Bench) -> None:
    """Files and patterns are read in the given order. At least one is required."""
    both = encoded(bench, bench.dev)
    assert both.manifest == manifest(bench, bench.train, bench.dev)
    assert both.n_sentences == len(TRAIN) + len(DEV)
    bench.ok("encode", bench.folder / "tr*.txt", "-o", bench.path("enc"), "-q", "-f", "S1")
    assert tw.Shards(bench.path("enc")).manifest == manifest(bench)
    assert invoke("encode", "-o", bench.path("enc")).exit_code == 2


@row("encode", "--classes")
def classes(bench: Bench) -> None:
    """--classes learns word classes from the words of the files and adds them to the features."""
    several = tw.WordClasses.learn(TRAIN, classes="several")
    assert encoded(bench, "--classes").manifest == manifest(bench, features="S1" + several)


@row("encode", "-o", "--output")
def output(bench: Bench) -> None:
    """-o is required. A second run reuses the shards in the folder."""
    for spelling in ("-o", "--output"):
        message = bench.ok("encode", bench.train, spelling, bench.path(f"x{spelling}"), "-f", "S1").stderr
        assert tw.Shards(bench.path(f"x{spelling}")).manifest == manifest(bench)
        assert "Shards: 1 new, 0 from an earlier run" in message
    again = bench.ok("encode", bench.train, "-o", bench.path("x-o"), "-f", "S1").stderr
    assert "Shards: 0 new, 1 from an earlier run" in again
    assert "-o" in invoke("encode", bench.train).stderr


@row("encode", "--features", "-f")
def features(bench: Bench) -> None:
    """--features accepts a feature set, a template or a sum. Default: the default features."""
    for spelling in ("--features", "-f"):
        for given, expected in (("S2", "S2"), ("word[0]\npos[1]", "word[0]\npos[1]"), (None, "default")):
            options = () if given is None else (spelling, given)
            bench.ok("encode", bench.train, "-o", bench.path("enc"), "-q", *options)
            assert tw.Shards(bench.path("enc")).manifest == manifest(bench, features=expected)


@row("encode", "--shard-tokens")
def shard_tokens(bench: Bench) -> None:
    assert len(encoded(bench)) == 1
    many = encoded(bench, "--shard-tokens", 20)
    assert many.manifest == manifest(bench, shard_tokens=20)
    assert len(many) > 2


@row("encode", "--memory")
def memory(bench: Bench) -> None:
    """Exceeding --memory is an error, and so is a value that is not a size."""
    assert encoded(bench, "--memory", "1G").manifest == manifest(bench)
    refused = invoke("encode", bench.train, "-o", bench.path("enc"), "--memory", "1M")
    assert refused.exit_code == 2
    assert "smaller shards" in refused.stderr
    assert "--memory" in invoke("encode", bench.train, "-o", bench.path("enc"), "--memory", "lots").stderr


@row("encode", "--n-jobs")
def n_jobs(bench: Bench) -> None:
    assert encoded(bench, "--n-jobs", 2).manifest == encoded(bench, "--n-jobs", 1, name="one").manifest


@row("encode", "--backend", "--address", "--workers")
def backend(bench: Bench) -> None:
    """The workers of a cluster write identical shards."""
    plain = encoded(bench, "--shard-tokens", 20, name="one").manifest
    assert encoded(bench, "--shard-tokens", 20, "--backend", "local").manifest == plain
    requested = bench.cluster("tagwise.ray.encoding")
    by_ray = ("--backend", "ray", "--address", "auto", "--workers", 2)
    assert encoded(bench, "--shard-tokens", 20, *by_ray).manifest == plain
    assert requested == ["auto", 2]
    for option in (("--address", "auto"), ("--workers", 2)):
        refused = invoke("encode", bench.train, "-o", bench.path("x"), *option)
        assert (refused.exit_code, "requires --backend ray" in refused.stderr) == (2, True)
    refused = invoke("encode", bench.train, "-o", bench.path("x"), "--backend", "ray", "--n-jobs", 2)
    assert "--workers" in refused.stderr


@row("encode", "--columns", "--label", "--format")
def reading(bench: Bench) -> None:
    """--columns renames columns, --label chooses the label, and --format overrides the file extension."""
    names = ["form", "tag", "kind"]
    tagged = encoded(bench, "--columns", "form,tag,kind", "--label", "tag")
    assert tagged.manifest == manifest(bench, columns=names, label="tag")
    assert sorted(tagged.labels) == ["D", "N", "P", "V"]
    other = bench.path("train.jsonl", bench.train.read_text())
    bench.ok("encode", other, "-o", bench.path("enc"), "-q", "-f", "S1", "--format", "conll")
    assert tw.Shards(bench.path("enc")).labels == encoded(bench, name="one").labels


@row("encode", "-q", "--quiet")
def quiet(bench: Bench) -> None:
    for spelling in ("-q", "--quiet"):
        assert bench.ok("encode", bench.train, "-o", bench.path("enc"), spelling).stderr == ""
    assert "tokens" in bench.ok("encode", bench.train, "-o", bench.path("enc")).stderr


@pytest.mark.parametrize("case", cases("encode"))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases("encode")[case](bench)
