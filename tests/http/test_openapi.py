"""The OpenAPI document generated from the code."""

import json
import re

import pytest


@pytest.fixture
async def document(sample_app):
    return sample_app.document()


async def test_openapi_paths_are_spelled_as_declared(document):
    assert set(document["paths"]) == {
        "/api/v1/login/",
        "/token/",
        "/api/v2/things/",
        "/api/v2/things/{thing_id}/",
        "/api/v1/sandbox/thing/",
        "/api/v2/slow/",
        "/api/v2/errors/{kind}/",
    }
    assert document["openapi"].startswith("3.1")


async def test_openapi_operations_are_named_by_function_and_tagged(document):
    made = document["paths"]["/api/v2/things/"]["post"]
    assert made["operationId"] == "make_thing"
    assert made["summary"].startswith("Make a thing")
    assert made["tags"] == ["sample-app"]
    assert made["x-moves-money"] is True
    assert document["paths"]["/api/v1/login/"]["post"]["tags"] == ["authentication"]


async def test_every_authentication_scheme_documents_its_headers(document):
    refs = [{"$ref": "#/components/parameters/IdempotencyKey"}, {"$ref": "#/components/parameters/Signature"}]
    signed = document["paths"]["/api/v2/things/{thing_id}/"]["get"]
    assert [each for each in signed["parameters"] if "$ref" in each] == refs
    assert {each.get("name") for each in signed["parameters"]} >= {"thing_id", "limit", "omit[]"}
    assert signed["security"] == [{"bearer": []}]
    sandbox = document["paths"]["/api/v1/sandbox/thing/"]["post"]
    assert sandbox["security"] == [{"bearer": []}]
    assert "parameters" not in sandbox
    assert document["paths"]["/token/"]["post"]["security"] == []


async def test_openapi_errors_are_listed_by_status(document):
    responses = document["paths"]["/api/v2/things/"]["post"]["responses"]
    assert responses["401"]["x-problems"] == ["invalid-signature", "unauthorized"]
    assert "idempotency-key-reused" in responses["422"]["x-problems"]
    assert "application/json" in responses["422"]["content"]
    assert "malformed-json" in responses["400"]["x-problems"]
    assert set(responses) == {"201", "400", "401", "409", "413", "415", "422", "429", "500", "503"}


async def test_request_schemas_are_closed_and_response_schemas_open(document):
    schemas = document["components"]["schemas"]
    assert schemas["Thing"]["additionalProperties"] is False
    assert schemas["Size"]["additionalProperties"] is False
    assert "additionalProperties" not in schemas["Problem"]


async def test_a_response_without_a_body_documents_no_content(document):
    assert all(
        "content" not in answer or answer["content"]
        for path in document["paths"].values()
        for operation in path.values()
        for answer in operation["responses"].values()
    )
    thing = document["paths"]["/api/v1/sandbox/thing/"]["post"]["responses"]
    assert "content" not in thing["202"]
    assert "ambiguous-signature" in thing["400"]["x-problems"]


async def test_deprecated_operations_are_only_in_the_full_document(sample_app, document):
    assert "/api/v1/old-things/" not in document["paths"]
    whole = sample_app.document(include_deprecated=True)
    old = whole["paths"]["/api/v1/old-things/"]["get"]
    assert old["deprecated"] is True
    assert old["x-sunset"] == "2027-01-01"


async def test_every_openapi_reference_resolves(document):
    for ref in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document))):
        found = document
        for step in ref.split("/"):
            found = found[step]
        assert found
