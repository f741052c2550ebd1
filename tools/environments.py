"""Environments for packages that are too large for `.venv`, created once and shared by all clones.

    python tools/environments.py torch     # create it if it is missing, and print the path of its Python

An environment is in `${XDG_CACHE_HOME:-~/.cache}/tagwise/environments/NAME-KEY`, with a key of the requirements and the
version of Python. It is created atomically: in a temporary folder, under a lock, and moved to its place when everything
is installed. The folder of an environment may be removed at any time and is created again when needed. The package
itself is not installed: tests run with the `python` folder of the checkout on PYTHONPATH, with the core built by `make
dev`. Run programs of an environment as `python -m NAME`, since their scripts contain the path of the temporary folder.
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

#: Markers of versions of Python and of platforms.
OLD, NEW, BEFORE_3_12 = "python_version < '3.11'", "python_version >= '3.11'", "python_version < '3.12'"
LINUX, UNIX = "sys_platform == 'linux'", "sys_platform != 'win32'"
#: Packages that run the tests, in every environment.
RUNNERS = (
    f"hypothesis==6.168.5; {OLD}",
    f"hypothesis==6.170.15; {NEW}",
    "pytest==9.2.0",
    "pytest-xdist==3.8.0",
)
#: Dependencies of the package itself, in environments that test extras.
PACKAGE = (
    f"numpy==2.2.6; {OLD}",
    f"numpy==2.4.6; {NEW}",
    "platformdirs==4.14.5",
    "rich==15.0.0",
    "rich-click==1.9.9",
    f"tomli==2.4.1; {OLD}",
)
#: Add a row for a new extra.
ENVIRONMENTS = {
    "browser": (
        *RUNNERS,
        *PACKAGE,
        "axe-playwright-python==0.1.8",
        "httptools==0.9.0",
        "httpx==0.28.1",
        "playwright==1.65.0",
        "starlette==1.10.0",
        "uvicorn==0.54.0",
        f"uvloop==0.23.0; {UNIX}",
    ),
    # Lower bounds of pyproject.toml (tools/checks/release.py), with click, pyparsing and scipy of the same time.
    "oldest": (
        *RUNNERS,
        "click==8.2.0",
        "matplotlib==3.7.0",
        "pyparsing==3.1.0",
        f"numpy==1.24.0; {BEFORE_3_12}",
        "platformdirs==4.0.0",
        "rich==13.0.0",
        "rich-click==1.9.3",
        f"tomli==2.0.0; {OLD}",
        "scikit-learn==1.4.0",
        "scipy==1.11.1",
    ),
    # No bounds: the newest versions on the index.
    "newest": (
        *RUNNERS,
        *("matplotlib", "numpy", "platformdirs", "rich", "rich-click", "scikit-learn", "scipy"),
        f"tomli; {OLD}",
    ),
    "ray": (*RUNNERS, *PACKAGE, "ray[data]==2.60.0"),
    "torch": (
        *RUNNERS,
        *PACKAGE,
        f"cuda-core==1.2.2; {LINUX}",
        "pytorch-crf==0.7.2",
        "setuptools==84.2.1",
        "torch==2.15.0",
    ),
}
STAMP = "complete"


def key(requirements: tuple[str, ...]) -> str:
    """Return a key for these requirements and this version of Python."""
    version = f"{platform.python_implementation()} {platform.python_version()} {platform.machine()}"
    return hashlib.sha256("\n".join((version, *sorted(requirements))).encode()).hexdigest()[:12]


def folder() -> Path:
    """Return the folder of all environments."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tagwise" / "environments"


def place(name: str) -> Path:
    """Return the path of the environment of this name, whether it exists or not."""
    return folder() / f"{name}-{key(ENVIRONMENTS[name])}"


def python_of(environment: Path) -> Path:
    """Return the Python of an environment."""
    return environment / "bin" / "python"


def make(name: str) -> Path:
    """Return the Python of an environment, which is created if it is missing."""
    target = place(name)
    if (target / STAMP).exists():
        return python_of(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when this process ends
        if (target / STAMP).exists():
            return python_of(target)
        for left in (target, *target.parent.glob(f"{target.name}.making-*")):  # left by killed processes
            shutil.rmtree(left, ignore_errors=True)
        made = Path(tempfile.mkdtemp(prefix=f"{target.name}.making-", dir=target.parent))
        try:
            _fill(made, ENVIRONMENTS[name])
            (made / STAMP).write_text("\n".join(ENVIRONMENTS[name]) + "\n", "utf-8")
            made.rename(target)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    return python_of(target)


def _fill(made: Path, requirements: tuple[str, ...]) -> None:
    print(
        f"creating {made.name.partition('.')[0]} in {made.parent} (takes minutes, once)",
        file=sys.stderr,
        flush=True,
    )
    quiet = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    quiet.pop("PYTHONPATH", None)
    for command in (
        [sys.executable, "-m", "venv", str(made)],
        [str(python_of(made)), "-m", "pip", "install", "--quiet", "--no-cache-dir", *requirements],
    ):
        subprocess.run(command, check=True, env=quiet, stdout=sys.stderr)


def main() -> int:
    """Create the named environment and print its Python."""
    if len(sys.argv) != 2 or sys.argv[1] not in ENVIRONMENTS:
        print(f"usage: python tools/environments.py {'|'.join(ENVIRONMENTS)}", file=sys.stderr)
        return 2
    print(make(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
