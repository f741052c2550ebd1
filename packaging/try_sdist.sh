#!/usr/bin/env bash
# Build a wheel from a source distribution without network for cargo, and tag a sentence with it in an empty
# environment:
#
#     packaging/try_sdist.sh dist/tagwise-*.tar.gz
#
# The crates are fetched beforehand by the lock file of the archive. The build itself is --offline --locked.
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
  # A test of packaging, not of speed: an unoptimized build is enough.
  export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
  "$work/build/bin/pip" wheel --quiet --no-build-isolation --no-deps --wheel-dir "$work/dist" "$source"
)
ls -l "$work/dist"
"$python" -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/tagwise-*.whl
"$work/empty/bin/python" -I "$here/try_wheel.py"
