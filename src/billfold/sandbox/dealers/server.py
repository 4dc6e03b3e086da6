"""The process of the simulated dealers: accepts sessions, quotes and fills orders, and misbehaves when asked to.

A limit order is filled a little inside its limit: the dealer asks for its spread and leaves the rest. Its clock is that
of the bank's last message, so that both agree in a sandbox whose clock stands still.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import uvloop

from billfold.bills.rules.market import Market
from billfold.bills.rules.pricing import subtract_spread
from billfold.cli.process_supervisor import exit_with_parent
from billfold.platform.calendars import Calendars
from billfold.platform.clock import wall_now
from billfold.platform.money import PRICE_PAR_MICROS, cents_for, format_price, format_usd
from billfold.platform.telemetry.logs import configure_logging, logger
from billfold.sandbox.dealers.books import DEALERS, Behavior, BookedOrder, DealerBooks, DealerExecution
from billfold.sandbox.dealers.launch import BANK_NAME
from billfold.trading.fix.codec import (
    LENGTH_MAX,
    Fields,
    Garbled,
    Message,
    NotFix,
    decode,
    format_time,
    read_frame,
    read_time,
)
from billfold.trading.fix.messages import CANCEL, ExecType
from billfold.trading.fix.session import Session, SessionEnded

log = logger(__name__)

SLOW_SECONDS: Final = 3.0
_FAR_BPS: Final = 50
_POLL_SECONDS: Final = 0.2
_MICROS, _UNIT_FACE = 1_000_000, 100
_REPEATED: Final = (54, 48, 22, 55, 460, 167, 541, 64)
_AT_ONCE: Final = frozenset({Behavior.CORRECT, Behavior.BUST})
_ELSEWHERE: Final = frozenset({Behavior.QUOTE_EXPIRES, Behavior.FILL_AFTER_CANCEL, Behavior.DOWN})
_ON_ORDER: Final = frozenset(Behavior) - _AT_ONCE - _ELSEWHERE


class SimulatedDealer:
    """One dealer: its books, and the session that it has."""

    def __init__(self, name: str, folder: Path, slippage_bps: int) -> None:
        self.name, self.books = name, DealerBooks(folder / name)
        self._spread, self._slippage = DEALERS[name], slippage_bps
        self._session: Session | None = None
        self._now = wall_now()
        self._market: Market | None = None

    async def serve(self, first: Message, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        """Serve a session from its logon on; one that is there already is cut."""
        if self._session is not None:
            self._session.abort()
        if self.books.has_pending_behavior(Behavior.DOWN):
            raise SessionEnded("the dealer is down")
        self._see(first)
        hooks: dict[str, Any] = {"now": self._clock, "on_message": self._receive, "repeated": {"8", "9", "S", "AG"}}
        session = Session((self.name.upper(), BANK_NAME), self.books, streams, **hooks)
        await session.accept(first)
        self._session = session
        acting = asyncio.create_task(self._act_at_once(session))
        try:
            await session.run()
        finally:
            acting.cancel()

    async def _clock(self) -> datetime:
        return self._now

    def _see(self, message: Message) -> None:
        with suppress(ValueError):
            self._now = read_time(message.fields.get(52, ""))

    async def _send(self, kind: str, body: Fields) -> None:
        """Send a message; one that a lost session does not take is repeated in the next one."""
        assert self._session is not None
        with suppress(OSError, TimeoutError):
            await self._session.send(kind, body)

    async def _receive(self, message: Message) -> None:
        self._see(message)
        fields = message.fields
        match message.type:
            case "R":
                await self._quote(fields)
            case "D":
                await self._work(fields)
            case "F":
                await self._cancel(fields)
            case "H":
                await self._tell_status(fields)
            case _:
                log.info("dealer_message_ignored", dealer=self.name, type=message.type)

    # -- quotes -----------------------------------------------------------------------

    async def _quote(self, fields: Mapping[int, str]) -> None:
        behavior = self.books.take_behavior(Behavior.QUOTE_EXPIRES, Behavior.REJECT, Behavior.SLOW, Behavior.FAR_PRICE)
        if behavior == Behavior.REJECT:
            await self._send("AG", [(131, fields[131]), (658, 99), (146, 1), (55, "[N/A]"), (58, "no interest today")])
            return
        if behavior == Behavior.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
        if self._market is None:
            self._market = await asyncio.to_thread(Market.packaged, Calendars())
        sign = 1 if fields[54] == "1" else -1
        spread = _FAR_BPS if behavior == Behavior.FAR_PRICE else self._spread
        mark = self._market.mark(self._market.bill(fields[48]), self._now)
        price = min(subtract_spread(mark, -sign * spread), PRICE_PAR_MICROS)
        ends = self._now if behavior == Behavior.QUOTE_EXPIRES else self._now + timedelta(minutes=1)
        price_tag, size_tag = (133, 135) if sign > 0 else (132, 134)
        named = [(131, fields[131]), (117, f"Q-{self.books.next_out}"), *_repeated(fields)]
        size = [(price_tag, format_price(price)), (size_tag, fields[38]), (62, format_time(ends)), (423, 1)]
        await self._send("S", [*named, *size, (60, format_time(self._now))])

    # -- orders -----------------------------------------------------------------------

    async def _work(self, fields: Mapping[int, str]) -> None:
        order_id = fields[11]
        if order_id in self.books.orders:  # the same order again is a mistake of the bank
            log.error("order_sent_twice", order_id=order_id)
            await self._report(self.books.orders[order_id], ExecType.REJECTED, [(103, 6), (58, "duplicate order")])
            return
        order = BookedOrder(order_id=order_id, fields=dict(fields), face=int(fields[38]))
        self.books.keep(order)
        behavior = self.books.take_behavior(*_ON_ORDER)
        if behavior == Behavior.SILENT:
            return
        if behavior == Behavior.REJECT:
            order.status = "8"
            self.books.keep(order)
            await self._report(order, ExecType.REJECTED, [(103, 0), (58, "no interest today")])
            return
        if behavior == Behavior.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
        await self._report(order, ExecType.NEW, [])
        if not self.books.has_pending_behavior(Behavior.FILL_AFTER_CANCEL):
            await self._fill(order, behavior)

    async def _fill(self, order: BookedOrder, behavior: Behavior | None) -> None:
        """Fill an order in one piece, or half of it; some behaviors show in the report."""
        is_half = behavior in {Behavior.PARTIAL_FILL, Behavior.DISCONNECT}
        units = order.face // _UNIT_FACE
        for part in [units // 2, units - units // 2] if is_half and units > 1 else [units]:
            execution = self._execution(order, part, self._price_of(order, behavior))
            order.filled += part * _UNIT_FACE
            order.status = "2" if order.filled == order.face else "1"
            self.books.keep(order, execution)
            wrong = int(behavior == Behavior.WRONG_MONEY)
            shown = msgspec.structs.replace(execution, money=execution.money + wrong)
            await self._report_execution(order, shown, ExecType.TRADE)
            if behavior == Behavior.FILL_TWICE:
                await self._report_execution(order, shown, ExecType.TRADE)
            if behavior == Behavior.DISCONNECT and self._session is not None:
                self._session.abort()
            if behavior == Behavior.PARTIAL_FILL:
                break

    def _price_of(self, order: BookedOrder, behavior: Behavior | None) -> int:
        limit, sign = round(float(order.fields[44]) * _MICROS), 1 if order.fields[54] == "1" else -1
        if order.fields.get(40) == "D":
            price = limit
        else:
            price = subtract_spread(limit, sign * max(self._slippage - self._spread, 0))
        if behavior == Behavior.FAR_PRICE:
            price = subtract_spread(price, -sign * _FAR_BPS)
        return min(price, PRICE_PAR_MICROS)

    def _execution(
        self, order: BookedOrder, units: int, price: int, *, kind: str = "FILL", corrects: str | None = None
    ) -> DealerExecution:
        nth = len(self.books.executions) + 1
        money = cents_for(units, price)
        return DealerExecution(
            dealer=self.name,
            reference=f"{self.name[0].upper()}{nth}-{order.order_id[:8]}",
            kind=kind,
            order_id=order.order_id,
            side="BUY" if order.fields[54] == "1" else "SELL",
            cusip=order.fields[48],
            face=units * _UNIT_FACE,
            price_micros=price,
            price=format_price(price),
            money=money,
            amount=format_usd(money),
            settles_on=order.fields[64],
            traded_on=Calendars().business_date(self._now).isoformat(),
            corrects=corrects,
        )

    async def _report(self, order: BookedOrder, kind: ExecType, more: Fields, exec_id: str | None = None) -> None:
        leaves = order.face - order.filled if order.status in {"0", "1"} else 0
        await self._send(
            "8",
            [
                *[(37, f"{self.name}-{order.order_id[:8]}"), (11, order.order_id)],
                *[(17, exec_id or f"{self.name[0].upper()}R{self.books.next_out}"), (150, kind), (39, order.status)],
                *_repeated(order.fields),
                *[(38, order.face), (151, leaves), (14, order.filled), (6, 0), (60, format_time(self._now))],
                *more,
            ],
        )

    async def _report_execution(self, order: BookedOrder, execution: DealerExecution, kind: ExecType) -> None:
        money = f"{execution.money // 100}.{execution.money % 100:02}"
        traded = [(32, execution.face), (31, execution.price), (423, 1), (381, money), (118, money)]
        more = [*traded, *([(19, execution.corrects)] if execution.corrects else [])]
        await self._report(order, kind, more, execution.reference)

    async def _cancel(self, fields: Mapping[int, str]) -> None:
        order = self.books.orders.get(fields[41])
        if order is None or order.status not in {"0", "1"}:
            status, cause = (order.status, 0) if order else ("8", 1)
            refusal = [(37, fields[41]), (11, fields[11]), (41, fields[41]), (39, status), (434, 1), (102, cause)]
            await self._send("9", [*refusal, (58, "nothing is open")])
            return
        order.status = "4"
        self.books.keep(order)
        await self._report(order, ExecType.CANCELED, [(41, fields[11].removeprefix(CANCEL))])
        if self.books.take_behavior(Behavior.FILL_AFTER_CANCEL):
            await self._fill(order, None)

    async def _tell_status(self, fields: Mapping[int, str]) -> None:
        known = self.books.orders.get(fields[11])
        if known is None:
            unknown = BookedOrder(order_id=fields[11], fields=dict(fields), face=0, status="8")
            await self._report(unknown, ExecType.ORDER_STATUS, [(103, 5), (58, "no such order was received")])
        elif known.status != "0" or self.books.take_behavior(Behavior.SILENT) is None:
            await self._report(known, ExecType.ORDER_STATUS, [])

    # -- at once ------------------------------------------------------------------------

    async def _act_at_once(self, session: Session) -> None:
        """Correct or bust the last execution, or cut the session, when asked to."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            if self.books.has_pending_behavior(Behavior.DOWN):
                session.abort()
                return
            replaced = {each.corrects for each in self.books.executions}
            last = next((e for e in reversed(self.books.executions) if e.reference not in replaced), None)
            if last is None or last.kind == "BUST" or not session.is_on:
                continue
            behavior = self.books.take_behavior(*_AT_ONCE)
            if behavior is not None:
                await self._replace(last, is_bust=behavior == Behavior.BUST)

    async def _replace(self, last: DealerExecution, *, is_bust: bool) -> None:
        """Bust an execution, or correct its price by a hundredth of a percent in the bank's favor."""
        order, sign = self.books.orders[last.order_id], 1 if last.side == "BUY" else -1
        units = last.face // _UNIT_FACE
        price = last.price_micros if is_bust else subtract_spread(last.price_micros, sign)
        kind = "BUST" if is_bust else "CORRECTION"
        execution = self._execution(order, units, price, kind=kind, corrects=last.reference)
        if is_bust:
            order.filled -= last.face
            order.status = "4"
        self.books.keep(order, execution)
        await self._report_execution(order, execution, ExecType.TRADE_CANCEL if is_bust else ExecType.TRADE_CORRECT)


def _repeated(fields: Mapping[int, str]) -> list[tuple[int, object]]:
    return [(tag, fields[tag]) for tag in _REPEATED if tag in fields]


async def serve_dealers(folder: Path, slippage_bps: int, *, listener: socket.socket, stop: asyncio.Event) -> None:
    """Accept sessions until stopped; the name to which a logon is addressed (56) chooses the dealer."""
    dealers = {name.upper(): SimulatedDealer(name, folder, slippage_bps) for name in DEALERS}

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = decode(await read_frame(reader))
            await dealers[first.fields.get(56, "")].serve(first, (reader, writer))
        except (KeyError, NotFix, Garbled, SessionEnded, OSError, EOFError, asyncio.CancelledError) as error:
            log.info("dealer_session_ended", reason=repr(error))
        finally:
            writer.close()

    server = await asyncio.start_server(accept, sock=listener, limit=LENGTH_MAX)
    log.info("dealers_served", address=listener.getsockname())
    await stop.wait()
    server.close()
    for each in dealers.values():
        each.books.close()


async def _main(folder: Path, slippage_bps: int, listener: socket.socket) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve_dealers(folder, slippage_bps, listener=listener, stop=stop)


if __name__ == "__main__":
    configure_logging()
    exit_with_parent()
    state, bps, descriptor = sys.argv[1:]
    uvloop.run(_main(Path(state), int(bps), socket.socket(fileno=int(descriptor))))
