#!/bin/sh
# The software bill of materials of what the wheel installs, and its known vulnerabilities.
set -eu
cd "$(dirname "$0")/.."
mkdir -p dist
cyclonedx-py requirements --output-reproducible --of JSON -o dist/sbom.json src/billfold/constraints.txt
echo "dist/sbom.json has $(python -c 'import json; print(len(json.load(open("dist/sbom.json"))["components"]))') components"
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
timeout 120 pip-audit --no-deps --disable-pip --progress-spinner off -r src/billfold/constraints.txt >"$said" 2>&1 || status=$?
unknown=$(grep -c 'could not be audited' "$said" || true)
all=$(grep -c . src/billfold/constraints.txt)
if [ "$status" = 124 ] || [ "$unknown" = "$all" ] || grep -qE 'ConnectionError|ProxyError|Max retries|ServiceError' "$said"; then
  echo "audit: the advisory service does not answer here; no vulnerability was looked up"
  exit 0
fi
cat "$said"
exit "$status"
