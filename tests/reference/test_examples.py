"""The examples are what the bank really answers; no operation is without, and none opens to who may not call it."""

import json

import pytest
from tests.reference.documents import DOCUMENTS, operations_of, scopes_of
from tests.reference.intruders import UNTRIED, MemberIntruders, PartnerIntruders
from tests.reference.record import EXAMPLES, RECORD


@pytest.mark.parametrize("api", RECORD)
async def test_examples_are_what_is_answered_to_nobody_else(bank, api, capfd):
    intruders = PartnerIntruders(bank) if api == "partner" else MemberIntruders(bank, scopes_of(DOCUMENTS[api]))
    assert await RECORD[api](bank, intruders) == json.loads(EXAMPLES[api].read_text())
    assert intruders.tried == {name for name, *_ in operations_of(DOCUMENTS[api])} - UNTRIED
    said = "".join(capfd.readouterr())
    assert not [secret for secret in intruders.secrets if secret in said]


@pytest.mark.parametrize("api", RECORD)
def test_every_operation_has_an_example(api):
    assert {name for name, *_ in operations_of(DOCUMENTS[api])} == set(json.loads(EXAMPLES[api].read_text()))
