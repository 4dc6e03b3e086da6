"""Sends messages about cards to the bank, signed, over HTTP."""

import asyncio
import ssl
from functools import partial
from typing import Final

import httpx
import msgspec

from billfold.payments.cards.authorizations.commands import Decision, DeclineReason
from billfold.payments.cards.authorizations.messages import MessageAnswer, sign_message
from billfold.platform.clock import wall_now
from billfold.platform.logs import logger
from billfold.sandbox.card_processor.host import journal
from billfold.sandbox.card_processor.host.journal import BankMessage, Journal, Owed
from billfold.sandbox.card_processor.host.settings import HostSettings

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


class BankClient:
    """The bank's host of cards, over connections that stay open."""

    def __init__(self, settings: HostSettings) -> None:
        url = httpx.URL(settings.bank_url)
        self._key = bytes.fromhex(settings.bank_key)
        self._name = {"sni_hostname": url.host}
        self._read = msgspec.json.Decoder(MessageAnswer)
        self._http = httpx.AsyncClient(
            base_url=url.copy_with(host=settings.bank_address),
            headers={"host": url.netloc.decode(), "content-type": "application/json"},
            verify=ssl.create_default_context(cafile=settings.trusted_ca) if settings.trusted_ca else True,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=CONNECTIONS_MAX),
            timeout=CALL_SECONDS_MAX,  # each call has a deadline of its own
            trust_env=False,
        )

    async def send(self, message: BankMessage | bytes, seconds: float) -> MessageAnswer:
        """Return the bank's decision. Raises BankAway, MessageRefused."""
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        timestamp = str(int(wall_now().timestamp()))
        signed = {"x-timestamp": timestamp, "x-signature": sign_message(self._key, timestamp, body)}
        try:
            async with asyncio.timeout(seconds):
                response = await self._http.post(PATH, content=body, headers=signed, extensions=self._name)
        except (httpx.ConnectError, httpx.PoolTimeout) as error:
            raise BankAway(type(error).__name__, may_have=False) from None
        except (httpx.HTTPError, TimeoutError) as error:
            raise BankAway(type(error).__name__, may_have=True) from None
        if response.status_code == _ACCEPTED:
            return self._answer(response.content)
        if response.status_code in _CLIENT_ERRORS and response.status_code not in _TRY_AGAIN:
            raise MessageRefused(f"status {response.status_code}")
        raise BankAway(f"status {response.status_code}", may_have=response.status_code not in _CLIENT_ERRORS)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _answer(self, body: bytes) -> MessageAnswer:
        try:
            answer = self._read.decode(body)
        except msgspec.MsgspecError:
            raise BankAway("an answer that is none", may_have=True) from None
        if answer.reason is not None and answer.reason in _NOT_DECIDED:
            raise BankAway(answer.reason, may_have=False)
        return answer


log = logger(__name__)

_AT_A_TIME: Final = 20
_ANSWER_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 1.0
_PAUSE_MAX_SECONDS: Final = 30


class Forwarder:
    """Store and forward: what is stored is sent in order, of each purchase one message after the other."""

    def __init__(self, store: Journal, bank: BankClient) -> None:
        self._journal, self._bank = store, bank
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look at once whether there is something to send."""
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            self._wake.clear()
            now = wall_now().timestamp()
            due = await self._journal.call(partial(journal.due_messages, now=now, limit=_AT_A_TIME))
            for owed in due:
                if not await self._send(owed):
                    break  # the bank is away; the others wait with it
            else:
                if due:
                    continue
            try:
                await asyncio.wait_for(self._wake.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue

    async def _send(self, owed: Owed) -> bool:
        """Send one message; tell whether the bank answered."""
        refusal: str | None = None
        try:
            answer = await self._bank.send(owed.body, _ANSWER_SECONDS)
            if answer.decision == Decision.DECLINED:
                refusal = answer.reason
        except BankAway as away:
            pause = min(2**owed.attempts, _PAUSE_MAX_SECONDS)
            log.warning("owed_message_waits", reason=str(away), attempts=owed.attempts + 1)
            due_at = wall_now().timestamp() + pause
            await self._journal.call(lambda vault: journal.postpone_owed(vault, owed.n, due_at))
            return False
        except MessageRefused as error:
            refusal = str(error)
        if refusal is not None:
            log.warning("owed_message_refused", n=owed.n, reason=refusal)
        await self._journal.call(lambda vault: journal.settle_owed(vault, owed.n, refusal=refusal))
        return True
