"""The signature of a webhook (Standard Webhooks 1.0), and the secrets that make it."""

import base64
import hmac
from collections.abc import Iterator
from datetime import timedelta

from billfold.platform.errors import FieldError

_PREFIX = "whsec_"
KEY_BYTES_MIN = 24
"""Minimum length of a symmetric key (Standard Webhooks)."""
OVERLAP = timedelta(hours=24)
"""Period in which a replaced secret still signs together with the new one."""


def sign_webhook(shared_secret: str, delivery_id: str, timestamp_seconds: int, body: bytes) -> str:
    """Return the `webhook-signature` of a delivery ("v1,...") as Standard Webhooks defines it.

    The key is the text of the secret, or the bytes of its base64 if it begins with `whsec_`.
    """
    signed = f"{delivery_id}.{timestamp_seconds}.".encode() + body
    digest = hmac.digest(webhook_key(shared_secret), signed, "sha256")
    return "v1," + base64.b64encode(digest).decode()


def webhook_key(shared_secret: str) -> bytes:
    """Return the key of a secret. Raises ValueError if its base64 is invalid."""
    if not shared_secret.startswith(_PREFIX):
        return shared_secret.encode()
    encoded = shared_secret.removeprefix(_PREFIX)
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)


def secret_errors(secret: str) -> Iterator[FieldError]:
    """Yield the errors in a secret: not base64 after `whsec_`, too few bytes, or only blank ones."""
    loc = ("body", "shared_secret")
    try:
        key = webhook_key(secret)
    except ValueError:
        yield FieldError(loc, "must be base64 after whsec_", "value_error")
    else:
        visible = sum(char.isprintable() and not char.isspace() for char in key.decode(errors="replace"))
        if len(key) < KEY_BYTES_MIN or not visible:
            yield FieldError(
                loc, f"must decode to at least {KEY_BYTES_MIN} bytes, not all of them blank", "value_error"
            )
