#!/bin/sh
# Generate a package for each of both documents, {partner,customer}/openapi.json, and compile all.
set -eu
cd "$(dirname "$0")"
for api in partner customer; do
  go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml -package $api \
    -o $api/$api.go $api/openapi.json
done
go vet ./...
