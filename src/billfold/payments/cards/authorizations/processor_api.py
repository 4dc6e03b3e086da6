"""The host `cards`, at which the card processor asks for decisions.

`POST /v1/messages/` with `x-timestamp` (Unix seconds, within five minutes) and `x-signature`: HMAC-SHA256 in
hexadecimal digits over the timestamp and the body, under the key that both have. A message that is sent again is
answered again and does nothing: its id is its idempotency key.
"""

import hashlib
import hmac
from typing import Final

from billfold.http.api import Api
from billfold.http.operations import OPEN, Proof, post
from billfold.http.raw_request import RawRequest, decode
from billfold.ledger.bank import Bank
from billfold.payments.cards.authorizations.messages import Message, MessageAnswer, answer_message
from billfold.platform.clock import wall_now
from billfold.platform.errors import Refused
from billfold.platform.settings.settings import Settings

WINDOW_SECONDS: Final = 300
_KEY_PERSON: Final = b"billfold.cards"


def processor_key(settings: Settings, seed: bytes) -> bytes | None:
    """Return the key of messages: the one of the settings, or of a sandbox's seed; None: there is no processor."""
    if settings.card_processor_key is not None:
        return settings.card_processor_key
    return None if settings.is_production else hashlib.blake2b(seed, digest_size=32, person=_KEY_PERSON).digest()


def sign_message(key: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a message."""
    return hmac.digest(key, timestamp.encode() + body, "sha256").hex()


@post("/v1/messages/", OPEN, tag="cards", status=200, any_query=True)
async def decide_message(request: RawRequest, bank: Bank) -> MessageAnswer:
    """Decide a message about a card."""
    _require_signed(bank, request)
    request.check_content_type()
    message: Message = decode(request.body, Message)
    return await answer_message(bank, message)


def _require_signed(bank: Bank, request: RawRequest) -> None:
    """Raise Refused invalid-signature unless the processor has just signed the body."""
    key = processor_key(bank.settings, bank.seed)
    timestamp, signature = request.header(b"x-timestamp") or "", request.header(b"x-signature") or ""
    is_recent = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= len("9999999999")
    is_recent = is_recent and abs(wall_now().timestamp() - int(timestamp)) <= WINDOW_SECONDS
    if key is None or not is_recent:
        raise Refused("invalid-signature", "The message is not signed, or not within five minutes.")
    if not hmac.compare_digest(sign_message(key, timestamp, request.body).encode(), signature.lower().encode()):
        raise Refused("invalid-signature", "The signature does not match timestamp and body.")


class CardProcessorApi(Api):
    """What the card processor may call."""

    def __init__(self) -> None:
        super().__init__([decide_message], frozenset({Proof.NONE}))


def create_card_processor_app(bank: Bank) -> CardProcessorApi:
    """Return the ASGI application of one worker."""
    api = CardProcessorApi()
    api.open(bank, None)
    return api
