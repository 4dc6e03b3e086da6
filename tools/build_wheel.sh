#!/bin/sh
# Build the wheel into dist, twice, and compare. Times in it are those of the commit. `uv` is only needed after uv.lock
# changed: the versions that were tested ship with the wheel, as constraints.
set -eu
cd "$(dirname "$0")/.."
if ! python tools/write_constraints.py --check; then exit 1; fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1735689600)}
export SOURCE_DATE_EPOCH
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
rm -f dist/billfold-*.whl
python -m hatchling build -t wheel -d "$PWD/dist" >/dev/null 2>&1
umask 077 # what the machine is like does not show in the wheel
TZ=Pacific/Auckland python -m hatchling build -t wheel -d "$again" >/dev/null 2>&1
cmp dist/billfold-*.whl "$again"/billfold-*.whl
sha256sum dist/billfold-*.whl
