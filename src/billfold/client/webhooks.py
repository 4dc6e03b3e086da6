"""What a receiver does first with a delivery: see that it is ours, and read it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

import msgspec

from billfold.events.envelope import Envelope
from billfold.platform.clock import wall_now
from billfold.platform.crypto import sign_webhook

TOLERANCE_SECONDS = 300


class NotGenuine(ValueError):
    """A delivery that nobody who knows the shared secret has signed lately."""


def unwrap(
    body: bytes,
    headers: Mapping[str, str],
    *,
    shared_secret: str,
    tolerance_seconds: int = TOLERANCE_SECONDS,
) -> Envelope:
    """Return the event of a delivery whose signature holds. Raises NotGenuine.

    `body` is the bytes as they came. The same event may come again: look at `event_id`.
    """
    sent = {name.lower(): value for name, value in headers.items()}
    try:
        delivery_id, given = sent["webhook-id"], sent["webhook-signature"]
        at = int(sent["webhook-timestamp"])
    except (KeyError, ValueError):
        raise NotGenuine("It lacks webhook-id, webhook-timestamp or webhook-signature.") from None
    if abs(wall_now().timestamp() - at) > tolerance_seconds:
        raise NotGenuine("It was signed too long ago, or the clocks differ.")
    ours = sign_webhook(shared_secret, delivery_id, at, body)
    if not any(hmac.compare_digest(ours.encode(), each.encode()) for each in given.split(" ")):
        raise NotGenuine("The signature does not match the body.")
    return msgspec.json.decode(body, type=Envelope)
