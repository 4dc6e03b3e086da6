"""Books what dealers report, from the messages that are kept: each once, by a command whose key is the message.

What contradicts an order is HELD for a person and the order becomes UNKNOWN; what is about nothing that was sent is
REFUSED and answered. A message that fails takes no other along.
"""

from collections.abc import Mapping
from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import structlog

from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command, Outcome
from billfold.ledger.types import Origin
from billfold.platform.database.shortage import error_summary, is_shortage
from billfold.platform.errors import BillfoldError, NotFound, Refused
from billfold.platform.ids import command_id
from billfold.platform.money import cents_for, format_usd
from billfold.platform.settings.trading_desk import DealerSession
from billfold.trading.commands import (
    AmendExecution,
    ChangeOrder,
    NewExecution,
    RecordExecutions,
    RecordQuote,
    execution_id_of,
)
from billfold.trading.fix.codec import read_fields
from billfold.trading.fix.messages import ExecType, FieldReader, Unreadable, read_trade
from billfold.trading.fix.store import MessageStatus, StoredMessage, find_sent, settle
from billfold.trading.store import find_execution, find_newest_execution, find_order
from billfold.trading.types import ENDED, DealerOrder, Execution, ExecutionKind, OrderStatus, Side
from billfold.trading.worker import command_of

log = structlog.get_logger(__name__)

_SKEW = timedelta(minutes=1)
"""Difference of a dealer's clock from ours that is no contradiction."""
_ENDS: Mapping[str, OrderStatus] = {
    ExecType.CANCELED: OrderStatus.CANCELLED,
    ExecType.REJECTED: OrderStatus.REJECTED,
    ExecType.EXPIRED: OrderStatus.EXPIRED,
    ExecType.DONE_FOR_DAY: OrderStatus.EXPIRED,
}
_STATUSES = {**_ENDS, "0": OrderStatus.WORKING, "1": OrderStatus.WORKING}
_PENDING = frozenset("679ABE")
"""Reports (150) after which an order is as before: pending, stopped, suspended, calculated."""


class Booked(NamedTuple):
    """The new status of a message, the reason, and its order."""

    status: MessageStatus
    reason: str
    order_id: UUID | None


class Held(Exception):
    """The message contradicts the books: a person decides."""


class Unknown(Exception):
    """The message is about nothing that the bank sent, or cannot be read."""


class Booking:
    """Books one message."""

    def __init__(self, bank: Bank, session: DealerSession, message: StoredMessage) -> None:
        self._bank, self._session, self._message = bank, session, message
        self._bank_id = bank.own_id
        self._fields = read_fields(message.content).fields
        self._read = FieldReader(self._fields)
        self._order: DealerOrder | None = None
        self._reference: str | None = None

    async def book(self) -> Booked:
        """Book the message and note what became of it."""
        try:
            reason, status = await self._book(), MessageStatus.DONE
        except (Unknown, Unreadable) as error:
            reason, status = str(error), MessageStatus.REFUSED
        except Held as error:
            reason, status = str(error), MessageStatus.HELD
        except Exception as error:
            if is_shortage(error):
                raise
            reason, status = error_summary(error), MessageStatus.HELD
        if status == MessageStatus.HELD:
            await self._doubt(reason)
        if status != MessageStatus.DONE:
            shown = {"dealer": self._session.dealer, "type": self._message.type, "seq": self._message.seq}
            log.error("dealer_message_not_booked", status=status, reason=reason, **shown)
        order_id = self._order.order_id if self._order else None
        about = {"order_id": order_id, "reference": self._reference}
        await settle(self._bank.pool, self._message.message_id, status, reason, **about)
        return Booked(status, reason, order_id)

    async def _book(self) -> str:
        match self._message.type:
            case "8":
                return await self._report()
            case "S":
                return await self._quote()
            case "AG":
                await self._find_order(131)
                return f"no quote: {self._said}"
            case "9":
                await self._find_order(41)
                return f"not cancelled: {self._said}"
            case "3" | "j":
                return await self._refusal()
            case other:
                raise Unknown(f"messages of type {other} are not taken")

    @property
    def _said(self) -> str:
        return self._fields.get(58, "")[:200]

    async def _find_order(self, *tags: int) -> DealerOrder:
        """Return the order that the message names, which was sent to this dealer or to which it was asked a quote."""
        tag = next((each for each in tags if each in self._fields), tags[-1])
        found = await find_order(self._bank.pool, self._bank_id, self._read.order_id(tag))
        if found is None or found.dealer not in {None, self._session.dealer}:
            raise Unknown("no such order was sent to this dealer")
        self._order = found
        return found

    async def _quote(self) -> str:
        order = await self._find_order(131)
        bill = self._bank.market.bill(order.cusip)
        price, size = (133, 135) if order.side == Side.BUY else (132, 134)
        if self._fields.get(48) != order.cusip:
            raise Unknown(f"the quote is for {self._fields.get(48)}, not for {order.cusip}")
        self._read.require_dollars()
        if order.status in ENDED:
            return "too late: the order has ended"
        await self._submit(
            RecordQuote,
            (order.order_id,),
            order_id=order.order_id,
            dealer=self._session.dealer,
            price_micros=self._read.price(price, self._session.price_type, bill, order.settles_on),
            units=self._read.units(size) if self._read.has(size) else order.open_units,
            reference=self._read.text(117),
            valid_until=self._read.instant(62) if self._read.has(62) else None,
        )
        return ""

    async def _report(self) -> str:
        kind = self._read.text(150)
        if kind in {ExecType.TRADE_CORRECT, ExecType.TRADE_CANCEL}:
            return await self._amend(is_bust=kind == ExecType.TRADE_CANCEL)
        order = await self._find_order(41, 11) if kind == ExecType.CANCELED else await self._find_order(11)
        if order.dealer is None:
            raise Unknown("no such order was sent to this dealer")
        if kind == ExecType.TRADE:
            return await self._fill(order)
        if kind == ExecType.ORDER_STATUS:
            return await self._status(order)
        if kind == ExecType.NEW:
            is_first = order.status in {OrderStatus.SENT, OrderStatus.UNKNOWN}
            return await self._change(order, OrderStatus.WORKING) if is_first else ""
        end = _ENDS.get(kind)
        if end is None and kind not in _PENDING:
            raise Held(f"150={kind[:8]} is not known: it may be a fill")
        return await self._change(order, end, self._said) if end else f"nothing follows from 150={kind}"

    async def _fill(self, order: DealerOrder) -> str:
        self._reference = self._require_reference()
        new = await self._trade(order)
        if await self._is_booked(ExecutionKind.FILL, new):
            return "booked already"
        outcome = await self._submit(RecordExecutions, (order.order_id, new.execution_id), executions=(new,))
        return f"booked as {outcome['executions'][0]}"

    def _require_reference(self) -> str:
        """Return the dealer's reference of a trade. Raises Held without one: it is a trade all the same."""
        try:
            return self._read.text(17)
        except Unreadable as error:
            raise Held(str(error)) from None

    async def _is_booked(self, kind: ExecutionKind, new: NewExecution | Execution) -> bool:
        """Tell whether the message's reference is booked. Raises Held if it is with other values."""
        assert self._reference is not None
        execution_id = execution_id_of(self._session.dealer, self._reference)
        before = await find_execution(self._bank.pool, self._bank_id, execution_id)
        if before is None:
            return False
        values = attrgetter("order_id", "units", "price_micros", "money", "settles_on")
        if (before.kind, values(before)) == (kind, values(new)):
            return True
        reference, self._reference = self._reference, None  # what is booked under it does not close this message
        raise Held(f"{reference} is booked already, with other values")

    async def _trade(self, order: DealerOrder) -> NewExecution:
        """Return the trade. A clock that differs a little from ours is taken for ours. Raises Held for other money."""
        bill = self._bank.market.bill(order.cusip)
        try:
            trade = read_trade(self._read, self._session, bill, order)
        except Unreadable as error:  # it is a trade all the same
            raise Held(str(error)) from None
        if trade.money != cents_for(trade.units, trade.price_micros):
            ours = format_usd(cents_for(trade.units, trade.price_micros))
            raise Held(f"the dealer's money is {format_usd(trade.money)}, ours is {ours}")
        now = await self._bank.now()
        at = min(trade.executed_at, now) if trade.executed_at < now + _SKEW else trade.executed_at
        at = max(at, order.decided_at) if at > order.decided_at - _SKEW else at
        return msgspec.structs.replace(trade, executed_at=at)

    async def _amend(self, *, is_bust: bool) -> str:
        dealer = self._session.dealer
        old = await find_newest_execution(self._bank.pool, self._bank_id, execution_id_of(dealer, self._read.text(19)))
        if old is None:
            raise Unknown(f"no execution {self._read.text(19)} is known")
        self._order = order = await find_order(self._bank.pool, self._bank_id, old.order_id)
        assert order is not None
        self._reference = self._require_reference()
        new = old if is_bust else await self._trade(order)
        if await self._is_booked(ExecutionKind.BUST if is_bust else ExecutionKind.CORRECTION, new):
            return "booked already"
        if (new.side, new.cusip) != (old.side, old.cusip):
            raise Held(f"it corrects {old.side} {old.cusip} to {new.side} {new.cusip}")
        outcome = await self._submit(
            AmendExecution,
            (order.order_id, old.execution_id, execution_id_of(dealer, self._reference)),
            execution_id=old.execution_id,
            order_id=order.order_id,
            is_bust=is_bust,
            reference=self._reference,
            **{name: getattr(new, name) for name in ("units", "price_micros", "money", "settles_on")},
        )
        await self._end_if_over(order)
        return f"booked as {outcome['execution_id']}"

    async def _end_if_over(self, order: DealerOrder) -> None:
        """End an order of which a bust leaves something open that the dealer does not work any more (151 is zero)."""
        if self._fields.get(151, "0").strip("0.") == "":
            after = await find_order(self._bank.pool, self._bank_id, order.order_id)
            if after is not None and after.status in {OrderStatus.WORKING, OrderStatus.PARTIALLY_FILLED}:
                await self._change(after, OrderStatus.CANCELLED, "the dealer busted an execution", step="end")

    async def _status(self, order: DealerOrder) -> str:
        """Compare the dealer's answer to a status request with ours; fills that are missing come by themselves."""
        said, filled = self._read.text(39), self._read.units(14) if self._read.has(14) else 0
        if filled > order.filled_units or (said != "8" and self._read.has(14) and filled < order.filled_units):
            raise Held(f"the dealer has filled {filled} units, {order.filled_units} are booked")
        status = _STATUSES.get(said)
        if status == OrderStatus.WORKING and order.status not in {OrderStatus.SENT, OrderStatus.UNKNOWN}:
            return ""
        if status == OrderStatus.REJECTED and order.status in {OrderStatus.SENT, OrderStatus.UNKNOWN}:
            reason = self._said or "the dealer has no such order"
            return await self._change(order, status if not order.filled_units else OrderStatus.CANCELLED, reason)
        return await self._change(order, status, self._said) if status else f"nothing follows from 39={said}"

    async def _refusal(self) -> str:
        """Apply a rejection (3, j) of something that was sent."""
        sent = await find_sent(self._bank.pool, self._message, self._read.number(45))
        if sent is None or sent.order_id is None:
            raise Unknown(f"the dealer rejects a message that is about no order: {self._said}")
        self._order = order = await find_order(self._bank.pool, self._bank_id, sent.order_id)
        if sent.type == "D" and order is not None:
            return await self._change(order, OrderStatus.REJECTED, self._said or "the dealer rejected the message")
        if sent.type == "H" and order is not None and order.status not in ENDED | {OrderStatus.UNKNOWN}:
            return await self._change(order, OrderStatus.UNKNOWN, "the dealer does not answer status requests")
        return f"the dealer rejects a message of type {sent.type}: {self._said}"

    async def _change(self, order: DealerOrder, status: OrderStatus, reason: str = "", step: str = "") -> str:
        """Change the state of an order; one that has ended stays as it is."""
        if order.status == status or (order.status in ENDED and status in ENDED):
            return f"the order is {order.status}"
        fields = {"order_id": order.order_id, "status": status, "reason": reason or None, "by_dealer": True}
        await self._submit(ChangeOrder, (order.order_id,), step=step, **fields)
        return str(status)

    async def _doubt(self, reason: str) -> None:
        """Let an order wait for a person whose execution is in doubt: nothing is ordered for it twice."""
        if self._order is not None and self._order.dealer is not None:
            fresh = await find_order(self._bank.pool, self._bank_id, self._order.order_id)
            if fresh is not None and fresh.status not in ENDED | {OrderStatus.UNKNOWN, OrderStatus.NEW}:
                try:
                    await self._change(fresh, OrderStatus.UNKNOWN, reason[:200], step="doubt")
                except (Held, BillfoldError):
                    log.exception("order_not_in_doubt", order_id=str(fresh.order_id))

    async def _submit(
        self, kind: type[Command], references: tuple[UUID, ...], *, step: str = "", **fields: Any
    ) -> Outcome:
        """Submit a command under the id of the message. Raises Held with its refusal."""
        key = command_id(f"dealer-message{step}", self._message.message_id)
        command = command_of(self._bank, kind, references, key=key, caller="dealer", origin=Origin.system(), **fields)
        try:
            return (await self._bank.engine.submit(command)).outcome
        except (Refused, NotFound) as refusal:
            raise Held(refusal.detail) from None
