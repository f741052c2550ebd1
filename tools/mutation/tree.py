"""Copy of the tree with all mutants of a sample, built once."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import python_sites, rust_sites
from .mutant import Mutant, apart

ROOT = Path(__file__).resolve().parents[2]

#: Files without mutants: drawing code (coordinates and colours), output of the benchmark command, and code that is
#: tested only with torch (make test-torch).
SILENT = re.compile(r"python/tagwise/(torch/.*|report/(svg|figures)\.py|cli/bench\.py|_core\.pyi)$")

#: Python side of the switch.
SWITCH = '''"""The switch of the mutants in this copy."""
import atexit, ctypes, json, os

ACTIVE = int(os.environ.get("TAGWISE_MUTANT", "-1"))
HITS, CORE, COUNT = set(), [], NUMBER


def on(number):
    HITS.add(number)
    return number == ACTIVE


def native():
    if not CORE:
        from tagwise import _core
        library = ctypes.CDLL(_core.__file__)
        library.tagwise_mutants.restype = ctypes.POINTER(ctypes.c_uint8)
        CORE.append(library.tagwise_mutants())
    return CORE[0]


def taken():
    """Return the mutants reached since the last call."""
    array, found = native(), set(HITS)
    for i in range(COUNT):
        if array[i]:
            found.add(i)
            array[i] = 0
    HITS.clear()
    return found


def leave():
    folder = os.environ.get("TAGWISE_MUTANTS")
    if folder:
        with open(os.path.join(folder, f"{os.getpid()}.hits"), "w") as file:
            json.dump(sorted(taken()), file)


atexit.register(leave)
'''


def sites(root: Path = ROOT) -> list[Mutant]:
    """Return every mutant of the package and of the core."""
    found: list[Mutant] = []
    for path in sorted((root / "python" / "tagwise").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        source = path.read_bytes()
        if not SILENT.search(name) and b"from __future__ import annotations" in source:
            found += python_sites.python_sites(name, source)
    for path in sorted((root / "rust" / "src").rglob("*.rs")):
        found += rust_sites.rust_sites(path.relative_to(root).as_posix(), path.read_bytes())
    return found


def sample(found: Sequence[Mutant], size: int, seed: int, only: str = "") -> list[Mutant]:
    """Draw `size` mutants at random, no two of which overlap."""
    chosen = [m for m in sorted(found) if re.search(only, m.file)]
    random.Random(seed).shuffle(chosen)
    return apart(chosen[: 2 * size])[:size]


#: File in a copy with the numbers of its mutants.
BUILT = "built.json"


def write(mutants: dict[int, Mutant], tree: Path, root: Path = ROOT) -> None:
    """Write the tree with the mutants, each behind the switch of its number."""
    for folder in ("python", "rust", "tests", "tools", "docs", "benchmarks", ".ci"):
        shutil.rmtree(tree / folder, ignore_errors=True)
        if (root / folder).is_dir():
            shutil.copytree(
                root / folder,
                tree / folder,
                ignore=shutil.ignore_patterns("__pycache__", "*.so", ".hypothesis"),
            )
    for path in [*root.glob("*.*"), root / "Makefile", root / "LICENSE"]:
        if path.is_file():
            shutil.copy2(path, tree / path.name)
    files: dict[str, dict[int, Mutant]] = {}
    for number, mutant in mutants.items():
        files.setdefault(mutant.file, {})[number] = mutant
    for name, inside in files.items():
        switched = rust_sites.switched if name.endswith(".rs") else python_sites.switched
        (tree / name).write_bytes(switched((root / name).read_bytes(), inside))
    count = str(max(mutants, default=0) + 1)
    (tree / "rust/src/mutants.rs").write_text(rust_sites.SWITCH.replace("COUNT", count))
    library = tree / "rust/src/lib.rs"
    library.write_text(library.read_text() + "pub mod mutants;\n")
    (tree / "python/tagwise/_mutants.py").write_text(SWITCH.replace("NUMBER", count))


def cargo(tree: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run cargo in the copy, with messages as JSON."""
    return subprocess.run(
        ["cargo", *args, "--message-format=json"], cwd=tree, capture_output=True, text=True, check=False
    )


def uncompilable(tree: Path, mutants: dict[int, Mutant]) -> set[int]:
    """Return the mutants that do not compile."""
    run = cargo(tree, "check", "--quiet", "--lib")
    out: set[int] = set()
    errors = []
    for line in run.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-message" or message["message"]["level"] != "error":
            continue
        errors.append(message["message"]["rendered"])
        for span in _spans(message["message"]):
            text = (tree / span["file_name"]).read_bytes()
            first = text.rfind(b"crate::mutants::on(", 0, span["byte_end"] + 20)
            around = text[max(0, first) : first + 40]
            number = re.match(rb"crate::mutants::on\((\d+)\)", around)
            if number and int(number[1]) in mutants:
                out.add(int(number[1]))
    if run.returncode and not out:
        raise SystemExit("the copy does not compile:\n" + "\n".join(errors) + run.stderr)
    return out


def _spans(message: dict[str, object]) -> list[dict[str, object]]:
    spans = list(message["spans"])  # type: ignore[call-overload]
    for child in message["children"]:  # type: ignore[attr-defined]
        spans += _spans(child)
    return spans


def build(mutants: dict[int, Mutant], tree: Path) -> dict[int, Mutant]:
    """Write and compile the copy, leaving out mutants that do not compile, and return the remaining ones."""
    tree.mkdir(parents=True, exist_ok=True)
    while True:
        write(mutants, tree)
        failed = uncompilable(tree, mutants)
        if not failed:
            break
        for number in sorted(failed):
            print(f"  does not compile: {mutants[number]}")
        mutants = {number: m for number, m in mutants.items() if number not in failed}
    for args in (
        ["build", "--profile", "quick", "--config", "profile.quick.opt-level=1", "--lib"],
        ["test", "--no-default-features", "--no-run"],
    ):
        run = cargo(tree, *args, "--quiet")
        if run.returncode:
            raise SystemExit(run.stderr)
        for line in run.stdout.splitlines():
            message = json.loads(line)
            if message.get("executable") and "test" in args:
                shutil.copy2(message["executable"], tree / "core-tests")
    shutil.copy2(tree / "target/quick/lib_core.so", tree / "python/tagwise/_core.abi3.so")
    subprocess.run([sys.executable, "-c", "import tagwise"], cwd=tree / "python", check=True)
    (tree / BUILT).write_text(json.dumps(sorted(mutants)))
    return mutants


def built(mutants: dict[int, Mutant], tree: Path) -> dict[int, Mutant]:
    """Return the mutants of the sample in a copy that was built before, and update its tests."""
    shutil.rmtree(tree / "tests")
    shutil.copytree(
        ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__", ".hypothesis")
    )
    return {number: mutants[number] for number in json.loads((tree / BUILT).read_text())}
