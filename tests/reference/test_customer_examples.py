"""The examples of the Customer API are what the bank really answers; no operation is without."""

import json

from tests.reference.customer_recorder import EXAMPLES, record

from billfold.http.customer_api.app import customer_document
from billfold.platform.settings.settings import Settings


async def test_examples_are_what_is_answered(bank):
    played = await record(bank)
    assert json.loads(json.dumps(played)) == json.loads(EXAMPLES.read_text())


def test_every_operation_has_an_example():
    document = customer_document(Settings())
    named = {each["operationId"] for path in document["paths"].values() for each in path.values()}
    assert named == set(json.loads(EXAMPLES.read_text()))
