"""A receiver sees whether a delivery is genuine."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from billfold.events.schemas import API_VERSION, Envelope
from billfold.events.webhooks.signature import sign_webhook
from billfold.platform.clock import wall_now
from billfold_client.webhooks import InvalidWebhook, verify_webhook

SECRET, OLD = "a secret of sufficient length", "the secret before this one"
EVENT = UUID(int=7)
BODY = msgspec.json.encode(
    Envelope(
        event_id=EVENT,
        event_type="trades.maturity",
        timestamp=datetime(2025, 6, 2, tzinfo=UTC),
        sequence=1,
        previous_sequence=0,
        api_version=API_VERSION,
        resource_version=None,
        payload={},
    )
)


def headers(*secrets, age=0):
    at = int(wall_now().timestamp()) - age
    signatures = [sign_webhook(each, str(EVENT), at, body=BODY) for each in secrets]
    return {"Webhook-Id": str(EVENT), "Webhook-Timestamp": str(at), "Webhook-Signature": " ".join(signatures)}


def test_a_webhook_with_one_valid_signature_is_accepted():
    for sent in (headers(SECRET), headers(OLD, SECRET), headers(SECRET, age=290)):
        assert verify_webhook(BODY, sent, shared_secret=SECRET).event_id == EVENT


def test_a_webhook_with_a_wrong_secret_body_or_header_is_refused():
    good = headers(SECRET)
    for body, sent in (
        (BODY, headers(OLD)),
        (BODY + b" ", good),
        (BODY, {**good, "Webhook-Id": "other"}),
        (BODY, {**good, "Webhook-Timestamp": "now"}),
        (BODY, {}),
    ):
        with pytest.raises(InvalidWebhook):
            verify_webhook(body, sent, shared_secret=SECRET)


def test_an_old_webhook_delivery_is_refused():
    with pytest.raises(InvalidWebhook, match="too old"):
        verify_webhook(BODY, headers(SECRET, age=301), shared_secret=SECRET)
