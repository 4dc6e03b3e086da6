"""Calls of the client: what is sent again and under which key, how answers are read, what newer banks may say."""

import json
from typing import Any
from uuid import UUID

import httpx
import pytest
from tests.reference.documents import DOCUMENTS

from billfold_client import ApiError, FieldError
from billfold_client.customer import AsyncCustomerApi, CustomerApi
from billfold_client.partner import AsyncPartnerApi, FeeActivity, PartnerApi

POCKET = UUID(int=7)
WIRE = {"portal_id": POCKET, "amount_usdc": 1_00, "sender_name": "Contoso"}
AMOUNT = {"currency": "USD", "formatted": "$1.00", "value": 100}
CLIENTS = {"partner": (PartnerApi, AsyncPartnerApi), "customer": (CustomerApi, AsyncCustomerApi)}


class Bank:
    """Answers with what is left of `answers`, an exception among them; keeps the requests."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def answer(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def api(self, **options):
        transport = httpx.MockTransport(self.answer)
        return PartnerApi(httpx.Client(base_url="https://api.localhost", transport=transport), **options)

    def keys(self):
        return [each.headers["x-service-idempotency"] for each in self.requests]


def problem(status, **fields):
    headers = {"retry-after": "0"} if fields.get("retryable") else {}
    return httpx.Response(status, json={"code": "unavailable", "title": "Not now", **fields}, headers=headers)


def pocket_list(name, next_page=None):
    fields = {"id": str(POCKET), "pocket_name": name, "status": "OPEN", "type": "STANDARD", "attributes": []}
    fields |= {"portfolio": None, "deposit_strategy_id": "UST-4W", "reinvestment_strategy_id": "UST-4W"}
    return httpx.Response(200, json={"items": [fields], "next_page": next_page, "prev_page": None})


def deleted():
    return httpx.Response(202)


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    """The first wait is nothing, and so are those that double it."""
    monkeypatch.setattr("billfold_client.calls._FIRST_WAIT_SECONDS", 0.0)


def test_a_change_is_sent_again_under_its_key_until_it_is_answered():
    bank = Bank(httpx.ReadTimeout("lost"), problem(503, retryable=True), httpx.Response(502), deleted())
    bank.api().delete_subscription(POCKET, idempotency_key="mine")
    assert bank.keys() == ["mine"] * 4
    bank = Bank(httpx.ReadTimeout("lost"), deleted(), deleted())
    api = bank.api()
    api.delete_subscription(POCKET)
    api.delete_subscription(POCKET)
    assert len(bank.keys()) == 3
    assert len(set(bank.keys())) == 2


async def test_a_client_that_awaits_sends_again_and_reads_alike():
    pages = pocket_list("A", next_page="x"), pocket_list("B")
    bank = Bank(httpx.ConnectError("no"), problem(429, retryable=True), *pages)
    http = httpx.AsyncClient(base_url="https://api.localhost", transport=httpx.MockTransport(bank.answer))
    async with AsyncPartnerApi(http) as api:
        assert [each.pocket_name async for each in api.list_pockets(limit=1)] == ["A", "B"]
    assert [dict(each.url.params) for each in bank.requests[2:]] == [{"limit": "1"}, {"limit": "1", "cursor": "x"}]


@pytest.mark.parametrize(
    "answer",
    [
        problem(409, retryable=False),
        problem(503, retryable=False),
        httpx.Response(500),
        httpx.Response(503, headers={"retry-after": "61"}),
    ],
)
def test_a_refusal_that_would_stay_is_raised_at_once(answer):
    bank = Bank(answer)
    with pytest.raises(ApiError):
        bank.api().get_pocket(POCKET)
    assert len(bank.requests) == 1


def test_the_last_attempt_raises_what_it_got():
    bank = Bank(*[problem(503, retryable=True)] * 4)
    with pytest.raises(ApiError, match="503 unavailable"):
        bank.api().get_pocket(POCKET)
    bank = Bank(*[httpx.ConnectError("no")] * 2)
    with pytest.raises(httpx.ConnectError):
        bank.api(attempts=2).get_pocket(POCKET)


def test_a_simulation_has_no_key_and_is_not_sent_again_when_its_outcome_is_unknown():
    for answer, raised in ((httpx.ReadTimeout("lost"), httpx.ReadTimeout), (httpx.Response(502), ApiError)):
        bank = Bank(answer)
        with pytest.raises(raised):
            bank.api().sandbox_wire(**WIRE)
    bank = Bank(problem(503, retryable=True), httpx.Response(202))
    bank.api().sandbox_wire(**WIRE)
    assert len(bank.requests) == 2


def test_only_what_is_given_is_sent_and_null_is_a_value():
    bank = Bank(httpx.Response(503), httpx.Response(503))
    api = bank.api(attempts=1)
    for fields in ({}, {"description": None}):
        with pytest.raises(ApiError):
            api.update_subscription(POCKET, status="disabled", **fields)
    assert [json.loads(each.content) for each in bank.requests] == [
        {"status": "disabled"},
        {"status": "disabled", "description": None},
    ]


def test_an_error_names_the_fields_that_are_wrong():
    detail = [{"loc": ["body", "amount", 0], "msg": "must be a number", "type": "x"}]
    bank = Bank(httpx.Response(422, json={"detail": detail}, headers={"x-service-trace-id": "t"}))
    with pytest.raises(ApiError) as refused:
        bank.api().get_pocket(POCKET)
    assert refused.value.fields == [FieldError(("body", "amount", 0), "must be a number")]
    assert (refused.value.status, refused.value.code, refused.value.trace_id) == (422, "invalid", "t")


def test_lists_without_cursors_are_read_by_offset():
    def types(*names):
        items = [{"event": each, "description": "", "schema": {}, "example": {}, "version": 1} for each in names]
        return httpx.Response(200, json={"items": items, "count": 3, "offset": 0})

    bank = Bank(types("a", "b"), types("c"))
    assert [each.event for each in bank.api().list_event_types(limit=2)] == ["a", "b", "c"]
    assert dict(bank.requests[1].url.params) == {"limit": "2", "offset": "2"}


def test_what_a_newer_bank_adds_is_no_error():
    common: dict[str, Any] = {
        "id": str(POCKET),
        "transaction_id": str(POCKET),
        "description": "",
        "amount": AMOUNT,
        "title": "",
    }
    common |= {"time_booked": "2025-06-02T13:00:00Z", "time_settled": None, "status": "FORESEEN", "direction": "DEBIT"}
    common |= {"pocket_id": str(POCKET), "customer_id": str(POCKET), "remittance_information": None, "new": [1]}
    items = [{**common, "type": "FEE", "fee_type": "X"}, {**common, "type": "BARTER"}]
    bank = Bank(httpx.Response(200, json={"items": items, "next_page": None, "prev_page": None}))
    listed: list[Any] = list(bank.api().list_transactions())
    fee, barter = listed
    assert isinstance(fee, FeeActivity)
    assert str(fee.status) == "FORESEEN"
    assert barter["type"] == "BARTER"


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_an_id_that_would_lead_to_another_path_is_not_sent(value):
    bank = Bank()
    with pytest.raises(ValueError, match="not an id"):
        bank.api().get_pocket(value)


def test_an_id_is_one_segment_of_its_path():
    bank = Bank(problem(404))
    with pytest.raises(ApiError):
        bank.api().get_pocket("../customers?x#y")
    assert bank.requests[0].url.raw_path == b"/api/v2/pockets/..%2Fcustomers%3Fx%23y/"


def test_every_operation_of_both_documents_is_a_method_of_both_clients():
    for api, document in DOCUMENTS.items():
        nodes = [each for methods in document["paths"].values() for each in methods.values()]
        operations = {each["operationId"] for each in nodes if not each.get("deprecated")}
        operations |= {f"preview_{each['operationId']}" for each in nodes if "x-preview" in each}
        for kind in CLIENTS[api]:
            methods = {name for name, each in vars(kind).items() if callable(each)}
            assert methods == operations, "run `make setup`: the client is generated from another document"
            assert all(getattr(kind, each).__doc__ for each in methods)
