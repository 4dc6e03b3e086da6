"""The examples are what the bank really answers; no operation is without."""

import json

import pytest
from tests.reference.documents import DOCUMENTS, operations_of, scopes_of
from tests.reference.intruders import UNTRIED, MemberIntruders, PartnerIntruders
from tests.reference.record import EXAMPLES, RECORD

from billfold.http.operations import Proof


@pytest.mark.parametrize("api", RECORD)
async def test_examples_are_what_is_answered(bank, api):
    assert await RECORD[api](bank) == json.loads(EXAMPLES[api].read_text())


@pytest.mark.parametrize("api", RECORD)
def test_every_operation_has_an_example(api):
    assert {name for name, *_ in operations_of(DOCUMENTS[api])} == set(json.loads(EXAMPLES[api].read_text()))


@pytest.mark.parametrize("api", DOCUMENTS)
def test_a_generated_client_finds_a_name_of_its_own_for_every_schema(api):
    titles = [schema["title"].replace("_", "") for schema in DOCUMENTS[api]["components"]["schemas"].values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("api", RECORD)
async def test_every_operation_is_closed_to_all_who_may_not_call_it(bank, api, capfd):
    intruders = (
        PartnerIntruders(bank, api) if api == "partner" else MemberIntruders(bank, api, scopes_of(DOCUMENTS[api]))
    )
    await RECORD[api](bank, intruders)
    assert intruders.tried == {name for name, *_ in operations_of(DOCUMENTS[api])} - UNTRIED
    said = "".join(capfd.readouterr())
    assert not [secret for secret in intruders.secrets if secret in said]


def test_every_route_that_needs_proof_is_in_its_document(customer_app, world):
    for api, app in (("customer", customer_app), ("partner", world.app)):
        documented = {name for name, *_ in operations_of(DOCUMENTS[api])}
        protected = {each.name for each in app.operations if Proof.NONE not in {one.proof for one in each.access}}
        assert protected <= documented
