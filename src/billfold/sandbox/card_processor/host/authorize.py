"""Decides each message about a card: by the bank while it answers, else by the stand-in rule.

Messages of one purchase are decided one after the other, in the order of their arrival.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from uuid import UUID, uuid5
from weakref import WeakValueDictionary

import httpx
import msgspec

from billfold.payments.cards.authorizations.commands import Decision, DeclineReason, EntryMode
from billfold.payments.cards.authorizations.messages import MessageAnswer, MessageType, sign_message
from billfold.platform.clock import monotonic, wall_now
from billfold.platform.dates import iso_z
from billfold.platform.telemetry.logs import logger
from billfold.sandbox.card_processor.host import journal
from billfold.sandbox.card_processor.host.journal import BankMessage, DecidedRequest, Reply
from billfold.sandbox.card_processor.host.requests import Outcome, Request
from billfold.sandbox.card_processor.host.settings import HostSettings

PATH: Final = "/v1/messages/"
CONNECTIONS_MAX: Final = 64
CALL_SECONDS_MAX: Final = 30.0
_NOT_DECIDED: Final = frozenset({DeclineReason.TIMED_OUT, DeclineReason.UNAVAILABLE})
"""The bank itself says that it decided nothing; anything it approved too late it has reversed."""
_ACCEPTED: Final = 200
_CLIENT_ERRORS: Final = range(400, 500)
_TRY_AGAIN: Final = frozenset({401, 403, 404, 408, 421, 429})
"""A wrong key, a bank that does not know us yet, too many requests: not an error of the message itself."""


class BankAway(Exception):
    """The bank did not answer. `may_have` tells whether it may have the message all the same."""

    def __init__(self, reason: str, *, may_have: bool) -> None:
        super().__init__(reason)
        self.may_have = may_have


class MessageRefused(Exception):
    """The bank rejects the message permanently."""


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
            timeout=CALL_SECONDS_MAX,  # each call has its own deadline
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
            raise BankAway("an invalid answer", may_have=True) from None
        if answer.reason is not None and answer.reason in _NOT_DECIDED:
            raise BankAway(answer.reason, may_have=False)
        return answer


log = logger(__name__)

_AT_A_TIME: Final = 20
_ANSWER_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 1.0
_PAUSE_MAX_SECONDS: Final = 30


class Forwarder:
    """Store and forward: stored messages are sent in order, those of each purchase one after the other."""

    def __init__(self, store: journal.Journal, bank: BankClient) -> None:
        self._journal, self._bank = store, bank
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Check at once whether there is a message to send."""
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            self._wake.clear()
            now = wall_now().timestamp()
            due = await self._journal.call(partial(journal.due_messages, now=now, limit=_AT_A_TIME))
            for owed in due:
                if not await self._send(owed):
                    break  # the bank is unavailable; the others wait too
            else:
                if due:
                    continue
            try:
                await asyncio.wait_for(self._wake.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue

    async def _send(self, owed: journal.OwedMessage) -> bool:
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


REPLY_SECONDS: Final = 2.0
"""Time for which the network waits for a reply."""
_OWN_SECONDS: Final = 0.1
"""Time that the host reserves for storing and writing the reply. The bank has to answer before."""
_REASONS: Final[Mapping[DeclineReason | None, Outcome]] = {
    **dict.fromkeys((DeclineReason.CARD_CLOSED, DeclineReason.CARD_FROZEN), Outcome.RESTRICTED_CARD),
    **dict.fromkeys((DeclineReason.CARD_NOT_ACTIVATED, DeclineReason.CARD_OFFLINE), Outcome.RESTRICTED_CARD),
    **dict.fromkeys((DeclineReason.CARD_LIMIT, DeclineReason.CATEGORY_LIMIT), Outcome.EXCEEDS_AMOUNT_LIMIT),
    DeclineReason.CARD_EXPIRED: Outcome.EXPIRED_CARD,
    DeclineReason.CARD_NOT_FOUND: Outcome.INVALID_CARD_NUMBER,
    DeclineReason.CATEGORY_BLOCKED: Outcome.NOT_PERMITTED_TO_CARDHOLDER,
    DeclineReason.DUPLICATE: Outcome.DUPLICATE_TRANSMISSION,
    DeclineReason.INSUFFICIENT_FUNDS: Outcome.INSUFFICIENT_FUNDS,
    DeclineReason.MAGSTRIPE_OFF: Outcome.NOT_PERMITTED_TO_CARDHOLDER,
    DeclineReason.NO_AUTHORIZATION: Outcome.ORIGINAL_NOT_FOUND,
    DeclineReason.SUSPECTED_FRAUD: Outcome.SUSPECTED_FRAUD,
}
_PURCHASES: Final = frozenset({MessageType.AUTHORIZATION, MessageType.INCREMENT})
_APPROVAL_CODES: Final = 1_000_000


class AuthorizationHost:
    """The decisions of one host."""

    def __init__(
        self, store: journal.Journal, bank: BankClient, checks: journal.SecretChecks, *, stand_in_cents: int
    ) -> None:
        self._journal, self._bank, self._checks = store, bank, checks
        self._stand_in_cents = stand_in_cents
        self._under_way: dict[tuple[UUID, str, int], asyncio.Task[Reply]] = {}
        self._purchases: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.on_owed: Callable[[], None] = lambda: None

    async def respond(self, request: Request) -> Reply:
        """Return the reply to a message; a repeated message gets the same reply."""
        key = (request.message_id, request.pan, request.amount)
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._respond(request))
            task.add_done_callback(lambda _: self._under_way.pop(key))
        # A waiting client may disconnect; the decision is made and stored all the same.
        return await asyncio.shield(task)

    async def _respond(self, request: Request) -> Reply:
        until = monotonic() + REPLY_SECONDS - _OWN_SECONDS
        async with self._purchases.setdefault(request.network_reference, asyncio.Lock()):
            found = await self._journal.call(lambda vault: journal.look_up(vault, request, self._checks.find_wrong))
            if found.is_known:
                assert found.reply is not None
                return found.reply
            kept = await self._decide(request, found, until)
        if kept.owed:
            self.on_owed()
        return kept.reply

    async def _decide(self, request: Request, found: journal.KnownFacts, until: float) -> DecidedRequest:
        """Decide about a new message, and store the decision."""
        kept = _undecided(request, found)
        if found.reply is not None or request.is_declined:
            return await self._store_reply(request, kept._replace(reply=found.reply or Reply(Outcome.APPROVED)))
        message = _bank_message(request, found, kept)
        try:
            answer = await self._ask_bank(message, until, is_owed=found.is_owed)
        except BankAway as away:
            log.warning("bank_away", reason=str(away), kind=kept.kind, card_id=kept.card_id)
            return await self._decide_alone(request, kept, message, may_have=away.may_have)
        except MessageRefused as error:
            log.warning("bank_refused_message", reason=str(error), kind=kept.kind, card_id=kept.card_id)
            return await self._store_reply(request, kept._replace(reply=Reply(Outcome.SYSTEM_MALFUNCTION)))
        return await self._store_reply(request, kept._replace(reply=_reply_of(request, kept, answer), by_bank=True))

    async def _ask_bank(self, message: BankMessage, until: float, *, is_owed: bool) -> MessageAnswer:
        if is_owed:
            raise BankAway("earlier messages of the purchase must come first", may_have=False)
        return await self._bank.send(message, until - monotonic())

    async def _decide_alone(
        self, request: Request, kept: DecidedRequest, message: BankMessage, *, may_have: bool
    ) -> DecidedRequest:
        """Decide without the bank: it is sent the decision later, and any approval made too late is reversed."""
        if kept.kind == MessageType.REVERSAL:
            return await self._store_reply(
                request, kept._replace(reply=Reply(Outcome.REVERSAL_ACCEPTED), owed=(message,))
            )
        code = _approval_code(request.message_id)
        approved = kept._replace(reply=Reply(Outcome.APPROVED, request.amount, code))
        if request.is_advice:
            return await self._store_reply(request, approved._replace(owed=(message,)))
        declined = kept._replace(reply=Reply(Outcome.ISSUER_INOPERATIVE))
        if may_have and kept.kind in _PURCHASES:
            released = request.amount if kept.kind == MessageType.INCREMENT else None
            declined = declined._replace(owed=(_follow_up(message, MessageType.REVERSAL, amount=released),))
        if kept.kind != MessageType.AUTHORIZATION or request.entry_mode == EntryMode.ATM or request.cash:
            return await self._store_reply(request, declined)
        # An advice states the minimum hold of the bank: no more, if it had approved the purchase after all.
        advice = _follow_up(message, MessageType.ADVICE, amount=request.amount)
        approved = approved._replace(owed=(advice,), stood_in=True)
        stand_in = partial(journal.stand_in, request=request, approved=approved, declined=declined)
        return await self._journal.call(lambda vault: stand_in(vault, most=self._stand_in_cents))

    async def _store_reply(self, request: Request, kept: DecidedRequest) -> DecidedRequest:
        return await self._journal.call(lambda vault: journal.store_reply(vault, request, kept))


def _undecided(request: Request, found: journal.KnownFacts) -> DecidedRequest:
    """Return the request of a message, in view of the earlier ones of its purchase."""
    earlier, kind = found.earlier, request.kind
    if earlier and kind == MessageType.AUTHORIZATION:
        kind = MessageType.INCREMENT
    # A reversal may have a retrieval reference number of its own.
    reference = earlier.network_reference if earlier and kind == MessageType.REVERSAL else request.network_reference
    return DecidedRequest(
        card_id=found.card_id, kind=kind, network_reference=reference, reply=Reply(Outcome.DO_NOT_HONOR)
    )


def _bank_message(request: Request, found: journal.KnownFacts, kept: DecidedRequest) -> BankMessage:
    amount: int | None = request.amount
    if kept.kind == MessageType.REVERSAL:
        is_increment = found.earlier is not None and found.earlier.kind == MessageType.INCREMENT
        amount = found.earlier.amount if found.earlier and is_increment and not request.released else request.released
    said = ("is_partial_allowed", "is_purchase_only_allowed", "is_preauthorization", "entry_mode", "merchant")
    return {
        "message_id": str(request.message_id),
        "type": kept.kind,
        "card_id": kept.card_id,
        "network_reference": kept.network_reference,
        "amount": amount,
        "cash": request.cash if kept.kind in _PURCHASES else 0,
        "transmitted_at": iso_z(request.transmitted_at),
        **{name: getattr(request, name) for name in said},
    }


def _follow_up(message: BankMessage, kind: MessageType, *, amount: int | None) -> BankMessage:
    """Return a message about one that the bank did not answer."""
    message_id = uuid5(UUID(message["message_id"]), kind)
    return {**message, "message_id": str(message_id), "type": kind, "amount": amount}


def _reply_of(request: Request, kept: DecidedRequest, answer: MessageAnswer) -> Reply:
    if answer.decision not in {Decision.APPROVED, Decision.PARTIALLY_APPROVED}:
        return Reply(_REASONS.get(answer.reason, Outcome.DO_NOT_HONOR))
    if kept.kind == MessageType.REVERSAL:
        return Reply(Outcome.REVERSAL_ACCEPTED)
    outcome = Outcome.APPROVED
    if answer.decision == Decision.PARTIALLY_APPROVED:
        is_whole_purchase = request.is_purchase_only_allowed and answer.approved_amount == request.amount - request.cash
        outcome = Outcome.APPROVED_WITHOUT_CASH if is_whole_purchase else Outcome.APPROVED_IN_PART
    code = _approval_code(answer.authorization_id or request.message_id)
    return Reply(outcome, answer.approved_amount, code)


def _approval_code(identifier: UUID) -> str:
    return f"{identifier.int % _APPROVAL_CODES:06}"
