"""The examples of the reference are what the bank really answers, and no operation is without."""

import json

from tests.reference.recorder import EXAMPLES, record

from billfold.http.partner_api.app import partner_document, partner_operations
from billfold.platform.settings.settings import Settings
from billfold.sandbox.partner_api import sandbox_operations


async def test_examples_are_what_is_answered(bank):
    played = await record(bank)
    assert json.loads(json.dumps(played)) == json.loads(EXAMPLES.read_text())


def test_every_operation_has_an_example():
    document = partner_document(Settings(), tuple(partner_operations(sandbox_operations())), include_deprecated=True)
    named = {each["operationId"] for path in document["paths"].values() for each in path.values()}
    assert named == set(json.loads(EXAMPLES.read_text()))
