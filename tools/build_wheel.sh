#!/bin/sh
# Build the wheels of the bank and of its client into dist, or the folder that is named, twice, and compare. Times in it are those of the commit. The
# versions that were tested ship with it, as constraints; those of the image are beside it, with their hashes.
set -eu
cd "$(dirname "$0")/.."
out=${1:-$PWD/dist}
if ! python tools/write_constraints.py --check; then exit 1; fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1735689600)}
export SOURCE_DATE_EPOCH
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
rm -f "$out"/billfold-*.whl "$out"/billfold_client-*.whl
python=$(python -c 'import os, sys; print(os.path.abspath(sys.executable))')
build() { # build FOLDER
  for package in . clients/python; do
    (cd "$package" && "$python" -m hatchling build -t wheel -d "$1" >/dev/null 2>&1)
  done
}
build "$out"
uv export --frozen --quiet --no-header --no-annotate --no-dev --extra aws --extra fonts --extra otel --no-emit-local \
  --output-file "$out/requirements.txt"
umask 077 # what the machine is like does not show in the wheel
export TZ=Pacific/Auckland
build "$again"
for wheel in "$again"/*.whl; do cmp "$wheel" "$out/${wheel##*/}"; done
sha256sum "$out"/billfold-*.whl "$out"/billfold_client-*.whl
