"""The examples are what the bank really answers; no operation is without."""

import json

import pytest
from tests.reference.documents import DOCUMENTS, operations_of, scopes_of
from tests.reference.intruders import UNTRIED, MemberIntruders, PartnerIntruders
from tests.reference.record import EXAMPLES, RECORD

from billfold.http.operations import Proof


@pytest.mark.parametrize("api", RECORD)
async def test_recorded_examples_equal_actual_responses(bank, api):
    assert await RECORD[api](bank) == json.loads(EXAMPLES[api].read_text())


@pytest.mark.parametrize("api", RECORD)
def test_every_operation_has_an_example(api):
    assert {name for name, *_ in operations_of(DOCUMENTS[api])} == set(json.loads(EXAMPLES[api].read_text()))


@pytest.mark.parametrize("api", DOCUMENTS)
def test_schema_titles_are_unique_for_generated_clients(api):
    titles = [schema["title"].replace("_", "") for schema in DOCUMENTS[api]["components"]["schemas"].values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("api", RECORD)
async def test_every_operation_refuses_unauthorized_callers(bank, api, capfd):
    intruders = (
        PartnerIntruders(bank, api) if api == "partner" else MemberIntruders(bank, api, scopes_of(DOCUMENTS[api]))
    )
    await RECORD[api](bank, intruders)
    assert intruders.tried == {name for name, *_ in operations_of(DOCUMENTS[api])} - UNTRIED
    said = "".join(capfd.readouterr())
    assert not [secret for secret in intruders.secrets if secret in said]


def test_every_protected_route_is_documented(customer_app, world):
    for api, app in (("customer", customer_app), ("partner", world.app)):
        documented = {name for name, *_ in operations_of(DOCUMENTS[api])}
        protected = {each.name for each in app.operations if Proof.NONE not in {one.proof for one in each.access}}
        assert protected <= documented
