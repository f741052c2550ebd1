"""Environments for what `.venv` does not hold because it is large: made once, kept outside the clone, shared by clones.

    python tools/environments.py torch     # makes it if it is missing; prints the path of its Python

An environment lies in `${XDG_CACHE_HOME:-~/.cache}/tagwise/environments/NAME-KEY`, where the key stands for the list of
requirements and the version of Python. It appears whole or not at all: it is made in a folder beside its place, under a
lock, and moved there when all is installed. Such a folder may be removed at any time; it is made again when needed. The
package itself is not installed: tests run with the checkout's `python` folder on PYTHONPATH, with the core that
`make dev` has built there. Programs in an environment are run as `python -m NAME`, since their scripts name the folder
that it was made in.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

#: Packages that run the tests, in every environment.
RUNNERS = (
    "hypothesis==6.168.5; python_version < '3.11'",
    "hypothesis==6.170.15; python_version >= '3.11'",
    "pytest==9.2.0",
    "pytest-xdist==3.8.0",
)
#: Dependencies of the package itself, in environments that test extras.
PACKAGE = (
    "numpy==2.2.6; python_version < '3.11'",
    "numpy==2.4.6; python_version >= '3.11'",
    "platformdirs==4.14.5",
    "rich==15.0.0",
    "rich-click==1.9.9",
    "tomli==2.4.1; python_version < '3.11'",
)
#: A new extra is a row here.
ENVIRONMENTS = {
    "browser": (
        *RUNNERS,
        *PACKAGE,
        "httptools==0.9.0",
        "httpx==0.28.1",
        "playwright==1.65.0",
        "starlette==1.10.0",
        "uvicorn==0.54.0",
        "uvloop==0.23.0; sys_platform != 'win32'",
    ),
    # The lower bounds of pyproject.toml (tools/checks/release.py), with click, pyparsing and scipy of their day.
    "oldest": (
        *RUNNERS,
        "click==8.2.0",
        "matplotlib==3.7.0",
        "pyparsing==3.1.0",
        "numpy==1.24.0; python_version < '3.12'",
        "platformdirs==4.0.0",
        "rich==13.0.0",
        "rich-click==1.8.9",
        "tomli==2.0.0; python_version < '3.11'",
        "scikit-learn==1.4.0",
        "scipy==1.11.1",
    ),
    # No bounds at all: what an index has today.
    "newest": (
        *RUNNERS,
        *("matplotlib", "numpy", "platformdirs", "rich", "rich-click", "scikit-learn", "scipy"),
        "tomli; python_version < '3.11'",
    ),
    "ray": (*RUNNERS, *PACKAGE, "ray[data]==2.60.0"),
    "torch": (
        *RUNNERS,
        *PACKAGE,
        "cuda-core==1.2.2; sys_platform == 'linux'",
        "pytorch-crf==0.7.2",
        "setuptools==84.2.1",
        "torch==2.15.0",
    ),
}
STAMP = "complete"


def key(requirements: tuple[str, ...]) -> str:
    """What an environment of these requirements is called: another list or another Python is another one."""
    version = f"{platform.python_implementation()} {platform.python_version()} {platform.machine()}"
    return hashlib.sha256("\n".join((version, *sorted(requirements))).encode()).hexdigest()[:12]


def folder() -> Path:
    """Where environments are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tagwise" / "environments"


def place(name: str) -> Path:
    """Where the environment of this name lies, or will lie."""
    return folder() / f"{name}-{key(ENVIRONMENTS[name])}"


def python_of(environment: Path) -> Path:
    """Its Python."""
    return environment / "bin" / "python"


def make(name: str) -> Path:
    """The Python of an environment, which is made if it is missing."""
    there = place(name)
    if (there / STAMP).exists():
        return python_of(there)
    there.parent.mkdir(parents=True, exist_ok=True)
    with open(there.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another maker is waited for; it is let go when this process ends
        if (there / STAMP).exists():
            return python_of(there)
        for left in (there, *there.parent.glob(f"{there.name}.making-*")):  # of makers that were killed
            shutil.rmtree(left, ignore_errors=True)
        made = Path(tempfile.mkdtemp(prefix=f"{there.name}.making-", dir=there.parent))
        try:
            _fill(made, ENVIRONMENTS[name])
            (made / STAMP).write_text("\n".join(ENVIRONMENTS[name]) + "\n", "utf-8")
            made.rename(there)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    return python_of(there)


def _fill(made: Path, requirements: tuple[str, ...]) -> None:
    print(
        f"making {made.name.partition('.')[0]} in {made.parent} (minutes, once)", file=sys.stderr, flush=True
    )
    quiet = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    quiet.pop("PYTHONPATH", None)
    for command in (
        [sys.executable, "-m", "venv", str(made)],
        [str(python_of(made)), "-m", "pip", "install", "--quiet", "--no-cache-dir", *requirements],
    ):
        subprocess.run(command, check=True, env=quiet, stdout=sys.stderr)


def main() -> int:
    """Make the environment that is named, and print its Python."""
    if len(sys.argv) != 2 or sys.argv[1] not in ENVIRONMENTS:
        print(f"usage: python tools/environments.py {'|'.join(ENVIRONMENTS)}", file=sys.stderr)
        return 2
    print(make(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
