"""Verifies and parses a webhook delivery for its receiver."""

import hmac
from collections.abc import Mapping

import msgspec

from billfold.events.schemas import Envelope
from billfold.events.webhooks.signature import sign_webhook
from billfold.platform.clock import wall_now

TOLERANCE_SECONDS = 300


class InvalidWebhook(ValueError):
    """A delivery without a recent signature under the shared secret."""


def verify_webhook(
    body: bytes, headers: Mapping[str, str], *, shared_secret: str, tolerance_seconds: int = TOLERANCE_SECONDS
) -> Envelope:
    """Return the event of a delivery whose signature is valid. Raises InvalidWebhook.

    `body` is the raw bytes. An event may be delivered more than once: de-duplicate by `event_id`.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    try:
        delivery_id, signatures = lowered["webhook-id"], lowered["webhook-signature"]
        at = int(lowered["webhook-timestamp"])
    except (KeyError, ValueError):
        raise InvalidWebhook("It lacks webhook-id, webhook-timestamp or webhook-signature.") from None
    if abs(wall_now().timestamp() - at) > tolerance_seconds:
        raise InvalidWebhook("It was signed too long ago, or the clocks differ.")
    expected = sign_webhook(shared_secret, delivery_id, at, body=body)
    if not any(hmac.compare_digest(expected.encode(), each.encode()) for each in signatures.split(" ")):
        raise InvalidWebhook("The signature does not match the body.")
    return msgspec.json.decode(body, type=Envelope)
