"""Properties of the Customer API as a whole."""

import json
import re

import pytest
from tests.reference.documents import DOCUMENTS, operations_of
from tests.support.world import UNKNOWN

from billfold.apis.customer_api import customer_document
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.platform.settings.settings import Settings

STRATEGIES = "/api/v2/trading-strategies/"


def test_openapi_lists_the_scope_of_every_operation():
    document = customer_document(Settings())
    assert document["info"]["title"] == "Customer API"
    assert document["servers"] == [{"url": "https://api.localhost:8443"}]
    flows = document["components"]["securitySchemes"]["CodeBearer"]["flows"]
    assert flows["authorizationCode"]["scopes"] == dict(SCOPES)
    for path in document["paths"].values():
        for method, operation in path.items():
            for each in operation["security"]:
                (scope,) = each["CodeBearer"]
                assert scope in SCOPES
            assert {"401", "403", "429"} <= set(operation["responses"])
            refs = [each.get("$ref", "") for each in operation.get("parameters", [])]
            assert any("IdempotencyKey" in ref for ref in refs) == (method != "get")
            assert not any("Signature" in ref for ref in refs)


async def test_an_empty_patch_body_is_refused_by_every_operation(customer_desk, world):
    for api, desk in (("customer", customer_desk), ("partner", world)):
        for name, method, path, _ in operations_of(DOCUMENTS[api]):
            if method == "PATCH":
                answer = await desk.ask(method, re.sub(r"\{\w+\}", UNKNOWN, path), {}, status=422)
                assert {each["loc"][0] for each in answer.json()["detail"]} == {"body"}, name


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_openapi_lists_the_values_of_every_status_and_type(name):
    open_sets = {"Problem", "RequestLogEntry"}  # the address and the HTTP status of an error, that of a request
    unlisted = [
        (schema, field)
        for schema, described in DOCUMENTS[name]["components"]["schemas"].items()
        for field, shape in described.get("properties", {}).items()
        if field in {"status", "type", "role", "account_status", "verification_type", "notification_type"}
        and schema not in open_sets
        and not re.search(r'"(enum|const|\$ref)"', json.dumps(shape))
    ]
    assert unlisted == []


def test_openapi_documents_csv_downloads_with_their_media_type():
    paths = customer_document(Settings())["paths"]
    for path in ("/api/v1/trades.csv", "/api/v2/transactions.csv"):
        assert "text/csv" in paths[path]["get"]["responses"]["200"]["content"]


async def test_public_pages_need_no_token(customer_desk):
    for path in ("/health", "/openapi.json"):
        assert (await customer_desk.http.get(path)).status_code == 200, path


async def test_a_token_in_a_cookie_does_not_authenticate_an_api_request(customer_desk):
    headers = {"cookie": f"token={customer_desk.token.text}; __Host-session={customer_desk.token.text}"}
    await customer_desk.ask("GET", "/api/v1/customer/", status=401, token=None, headers=headers)


async def test_the_customer_api_lists_the_same_trading_strategies_as_the_partner_api(customer_desk, world):
    for filters in ({}, {"enabled_for": "DEPOSIT"}, {"offset": 1, "limit": 2}):
        assert await customer_desk.get(STRATEGIES, filters) == await world.get(STRATEGIES, filters)
