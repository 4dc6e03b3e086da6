#!/bin/sh
# Change the rules of money, dates, authority and signatures, one place at a time, and run the tests nearest to each
# change: tools/mutation.sh ["billfold.platform.money*" ...]. What no test noticed is listed at the end. Takes hours for
# everything; what was found is kept in mutants/, and only what changed since is tried again.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.uv/bin:$PATH"
uv run --quiet --with "mutmut==3.8.1" mutmut run --max-children "${JOBS:-1}" "$@"
uv run --quiet --with "mutmut==3.8.1" mutmut results
