"""Webhooks are delivered as the OpenAPI documents describe them."""

import pytest
from tests.support.events import NOW

from billfold.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS
from billfold.events.webhook_openapi import webhooks_of
from billfold.events.webhooks.store import Delivery, SubscriptionQueue
from billfold.events.webhooks.worker import headers_of
from billfold.platform import ids


@pytest.mark.parametrize(("kinds", "customer"), [(PARTNER_KINDS, False), (CUSTOMER_KINDS, True)])
def test_every_event_kind_has_a_schema_that_its_example_matches(kinds, customer):
    told = webhooks_of(kinds, customer=customer)
    assert tuple(told) == kinds
    for kind, call in told.items():
        (content,) = call["post"]["requestBody"]["content"].values()
        schema, example = content["schema"], content["example"]
        assert set(schema["required"]) <= set(example) <= set(schema["properties"])
        assert example["event_type"] == kind == schema["properties"]["event_type"]["const"]
        assert ("customer_id" in example) is customer
        assert schema["properties"]["timestamp"] == {"type": "string", "format": "date-time"}
        payload = schema["properties"]["payload"]
        assert set(payload["required"]) <= set(example["payload"]) <= set(payload["properties"])
    assert set(KINDS) == {*PARTNER_KINDS, *CUSTOMER_KINDS}


def test_the_documented_webhook_headers_match_a_delivery():
    call = webhooks_of(PARTNER_KINDS[:1], customer=False)[PARTNER_KINDS[0]]["post"]
    lane = SubscriptionQueue(
        subscription_id=ids.new(),
        customer_id=None,
        url="https://a.example/",
        retry_policy=None,
        secrets=("s" * 24,),
        failures=0,
    )
    delivery = Delivery(event_id=ids.new(), body=b"{}", tries=0)
    sent = headers_of(lane, delivery, ids.new(), called_at=NOW)
    assert {each["name"] for each in call["parameters"]} == set(sent) - {"content-type", "user-agent"}
