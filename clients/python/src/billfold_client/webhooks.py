"""Verifies and parses a webhook delivery for its receiver."""

from collections.abc import Mapping

from standardwebhooks import Webhook, WebhookVerificationError

from billfold_client.shapes import decode
from billfold_client.streams import Envelope


class InvalidWebhook(ValueError):
    """A delivery without a recent signature under the shared secret."""


def verify_webhook(body: bytes, headers: Mapping[str, str], *, shared_secret: str) -> Envelope:
    """Return the event of a delivery whose signature is valid and at most five minutes old. Raises InvalidWebhook.

    `body` is the raw bytes. An event may be delivered more than once: de-duplicate by `event_id`.
    """
    secret = shared_secret if shared_secret.startswith("whsec_") else shared_secret.encode()
    try:
        Webhook(secret).verify(body, dict(headers), json_parse=False)
    except (WebhookVerificationError, ValueError) as wrong:
        raise InvalidWebhook(f"The delivery is not believed: {wrong}") from wrong
    envelope: Envelope = decode(body, Envelope)
    return envelope
