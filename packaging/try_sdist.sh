#!/usr/bin/env bash
# A source distribution becomes a wheel with no network for cargo, and the wheel tags a sentence in an empty environment:
#
#     packaging/try_sdist.sh dist/tagwise-*.tar.gz
#
# What cargo needs is fetched beforehand, by the lock file of the archive: the build itself is --offline --locked.
set -euo pipefail
sdist=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=${PYTHON:-python3}

"$python" -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.7,<2'
tar -xzf "$sdist" -C "$work"
source=$(find "$work" -maxdepth 1 -name 'tagwise-*' -type d)
test -f "$source/Cargo.lock"
(cd "$source" && cargo fetch --locked)
(
  export CARGO_NET_OFFLINE=true MATURIN_PEP517_ARGS="--locked --offline" PATH="$work/build/bin:$PATH"
  # Packaging is looked at here, not speed: a quick build will do.
  export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
  "$work/build/bin/pip" wheel --quiet --no-build-isolation --no-deps --wheel-dir "$work/dist" "$source"
)
ls -l "$work/dist"
"$python" -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/tagwise-*.whl
"$work/empty/bin/python" -I "$here/try_wheel.py"
