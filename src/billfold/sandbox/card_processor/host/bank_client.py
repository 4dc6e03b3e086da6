"""Sends messages about cards to the bank, signed, over HTTP."""

import asyncio
import hmac
import ssl
from typing import Any, Final

import httpx
import msgspec

from billfold.payments.cards.authorizations.types import DeclineReason
from billfold.platform.clock import wall_now
from billfold.sandbox.card_processor.host.settings import HostSettings

BankMessage = dict[str, Any]
PATH: Final = "/v1/messages/"
CONNECTIONS_MAX: Final = 64
CALL_SECONDS_MAX: Final = 30.0
_NOT_DECIDED: Final = frozenset({DeclineReason.TIMED_OUT, DeclineReason.UNAVAILABLE})
"""The bank says so itself that it decided nothing; what it approved too late it has reversed."""
_ACCEPTED: Final = 200
_CLIENT_ERRORS: Final = range(400, 500)
_TRY_AGAIN: Final = frozenset({401, 403, 404, 408, 421, 429})
"""A wrong key, a bank that does not know us yet, too many requests: the message itself is not to blame."""


class BankAway(Exception):
    """The bank did not answer. `may_have` tells whether it may have the message all the same."""

    def __init__(self, reason: str, *, may_have: bool) -> None:
        super().__init__(reason)
        self.may_have = may_have


class MessageRefused(Exception):
    """The bank does not take the message, and will not."""


class Answer(msgspec.Struct, frozen=True):
    """What the bank decided. `approved_amount` is in cents: of an inquiry, the balance."""

    decision: str
    approved_amount: int = 0
    reason: str | None = None
    authorization_id: str | None = None


class BankClient:
    """The bank's host of cards, over connections that stay open."""

    def __init__(self, settings: HostSettings) -> None:
        url = httpx.URL(settings.bank_url)
        self._key = bytes.fromhex(settings.bank_key)
        self._name = {"sni_hostname": url.host}
        self._read = msgspec.json.Decoder(Answer)
        self._http = httpx.AsyncClient(
            base_url=url.copy_with(host=settings.bank_address),
            headers={"host": url.netloc.decode(), "content-type": "application/json"},
            verify=ssl.create_default_context(cafile=settings.trusted_ca) if settings.trusted_ca else True,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
            timeout=CALL_SECONDS_MAX,  # each call has a deadline of its own
            trust_env=False,
        )

    async def send(self, message: BankMessage | bytes, seconds: float) -> Answer:
        """Return the bank's decision. Raises BankAway, MessageRefused."""
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        try:
            async with asyncio.timeout(seconds):
                response = await self._http.post(
                    PATH, content=body, headers=self._signature(body), extensions=self._name
                )
        except (httpx.ConnectError, httpx.PoolTimeout) as error:
            raise BankAway(type(error).__name__, may_have=False) from None
        except (httpx.HTTPError, TimeoutError) as error:
            raise BankAway(type(error).__name__, may_have=True) from None
        if response.status_code == _ACCEPTED:
            return self._answer(response.content)
        if response.status_code in _CLIENT_ERRORS and response.status_code not in _TRY_AGAIN:
            raise MessageRefused(f"status {response.status_code}")
        raise BankAway(f"status {response.status_code}", may_have=response.status_code not in _CLIENT_ERRORS)

    def _signature(self, body: bytes) -> dict[str, str]:
        timestamp = str(int(wall_now().timestamp()))
        return {
            "x-timestamp": timestamp,
            "x-signature": hmac.digest(self._key, timestamp.encode() + body, "sha256").hex(),
        }

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _answer(self, body: bytes) -> Answer:
        try:
            answer = self._read.decode(body)
        except msgspec.MsgspecError:
            raise BankAway("an answer that is none", may_have=True) from None
        if answer.reason is not None and answer.reason in _NOT_DECIDED:
            raise BankAway(answer.reason, may_have=False)
        return answer
