"""Orders go to dealers over their sessions, which one process at a time keeps.

With quotes wanted, dealers are asked first and the best price within the guard is taken; otherwise, and if no quote
can be taken, the order goes as a limit order to one dealer after the other. An order is committed as SENT before its
message is. After each logon the dealer is asked about its orders, and nothing is sent again.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import structlog

from billfold.ledger.bank import Bank
from billfold.platform import ids
from billfold.platform.clock import monotonic
from billfold.platform.database.background_work import claimed
from billfold.platform.money import format_price
from billfold.trading.fix import messages
from billfold.trading.fix.adapter_link import AdapterLink
from billfold.trading.fix.booking import Booked
from billfold.trading.fix.link import DealerLink
from billfold.trading.fix.store import SessionLost, StoredMessage, list_cancels
from billfold.trading.rules.policy import Verdict, rank_quotes
from billfold.trading.store import list_live_orders, list_quotes
from billfold.trading.types import DealerOrder, OrderStatus, Quote
from billfold.trading.worker import change_order

log = structlog.get_logger(__name__)

ANSWER_SECONDS: Final = 10.0
"""Real time for a dealer to answer an order, or a question about it; and for a session to come back."""
_TICK_SECONDS: Final = 0.1
_CLAIM: Final = "dealer sessions"
_LOST = (OSError, TimeoutError, EOFError)
_WITH_A_DEALER = frozenset({OrderStatus.SENT, OrderStatus.WORKING, OrderStatus.PARTIALLY_FILLED})


class _Inquiry(NamedTuple):
    """A request for quotes that is under way: the dealers that were asked and have not answered."""

    until: float
    waiting: set[str]


class OrderRouter:
    """Sends the orders of a bank to its dealers, and asks about those that nobody answers."""

    def __init__(
        self, bank: Bank, *, answer_seconds: float = ANSWER_SECONDS, tick_seconds: float = _TICK_SECONDS
    ) -> None:
        self._bank, self._bank_id = bank, bank.own_id
        self._answer_seconds, self._tick_seconds = answer_seconds, tick_seconds
        owner_id = ids.new()
        hooks: dict[str, Any] = {"on_booked": self._booked, "on_open": self._opened}
        sessions = bank.settings.dealer_sessions
        kinds = {each.dealer: AdapterLink if each.adapter else DealerLink for each in sessions}
        self._links = {each.dealer: kinds[each.dealer](bank, each, owner_id, **hooks) for each in sessions}
        self._inquiries: dict[UUID, _Inquiry] = {}
        self._new_since: dict[UUID, float] = {}
        self._answer_by: dict[UUID, float] = {}
        self._asked: set[UUID] = set()
        self._leaving: set[UUID] = set()
        self._attending: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Keep the sessions and route orders until another process has taken them."""
        tasks = [asyncio.create_task(each.run()) for each in self._links.values()]
        tasks.append(asyncio.create_task(self._route_all()))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for each in done:
                await each
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _route_all(self) -> None:
        try:
            while True:
                await self.route()
                await asyncio.sleep(self._tick_seconds)
        finally:
            for each in self._attending:
                each.cancel()
            await asyncio.gather(*self._attending, return_exceptions=True)

    async def route(self) -> None:
        """Do what is due for each live order, for all at once: their commands are one batch."""
        live = await list_live_orders(self._bank.pool, self._bank_id)
        for known in (self._inquiries, self._new_since, self._answer_by):
            for gone in known.keys() - {each.order_id for each in live}:
                del known[gone]
        self._asked &= {each.order_id for each in live}
        cancels = {each.order_id for each in live if each.cancel_asked}
        cancels -= await list_cancels(self._bank.pool, cancels) if cancels else set()
        waiting = {each.get_name() for each in self._attending}
        for each in live:
            if (name := str(each.order_id)) not in waiting:
                attended = self._attend(each, needs_cancel=each.order_id in cancels)
                self._attending.add(asyncio.create_task(attended, name=name))
        if self._attending:  # an order whose dealer does not read waits alone
            done, self._attending = await asyncio.wait(self._attending, timeout=self._tick_seconds)
            for task in done:
                await task

    async def _attend(self, order: DealerOrder, *, needs_cancel: bool) -> None:
        try:
            if order.status == OrderStatus.NEW:
                await self._route(order)
            elif order.dealer in self._links:
                await self._follow(order, self._links[order.dealer], needs_cancel=needs_cancel)
        except _LOST as error:
            log.warning("order_not_sent", order_id=str(order.order_id), error=repr(error))

    # -- to a dealer --------------------------------------------------------------------

    async def _route(self, order: DealerOrder) -> None:
        """Send a new order, or ask for quotes. Without any session for a while it goes to people."""
        since = self._new_since.setdefault(order.order_id, monotonic())
        links = [each for each in self._links.values() if each.is_on]
        wanted = self._bank.settings.desk_quotes_wanted
        if not links:
            if monotonic() - since > self._answer_seconds:
                reason = "on the list of the desk: no dealer's session is on"
                await self._change(order, OrderStatus.SENT, reason)
            return
        inquiry = self._inquiries.get(order.order_id)
        if wanted and inquiry is None:
            await self._ask(order, links[:wanted])
            return
        quote, reason = None, "the next dealer in turn, at the limit"
        if inquiry is not None:
            quotes = (await list_quotes(self._bank.pool, self._bank_id, [order.order_id]))[order.order_id]
            if inquiry.waiting - {each.dealer for each in quotes} and monotonic() < inquiry.until:
                return
            quote, reason = await self._best(order, quotes)
        turn = order.round_no + sum(order.cusip.encode())
        link = self._links[quote.dealer] if quote else links[turn % len(links)]
        await self._send(order, link, quote, reason)

    async def _ask(self, order: DealerOrder, links: Sequence[DealerLink]) -> None:
        inquiry = self._inquiries[order.order_id] = _Inquiry(
            monotonic() + self._bank.settings.desk_quote_seconds, set()
        )
        bill, now = self._bank.market.bill(order.cusip), await self._bank.now()
        inquiry.waiting.update(each.dealer for each in links)
        request = list(messages.quote_request(order, bill, now))
        asking = (each.send("R", request, about=order.order_id) for each in links)
        for link, answer in zip(links, await asyncio.gather(*asking, return_exceptions=True), strict=True):
            if isinstance(answer, _LOST):
                inquiry.waiting.discard(link.dealer)
            elif answer is not None:
                raise answer

    async def _best(self, order: DealerOrder, quotes: Sequence[Quote]) -> tuple[Quote | None, str]:
        """Return the quote to take, and why."""
        now = await self._bank.now()
        usable = [each for each in quotes if each.reference and self._is_on(each.dealer)]
        ranked = rank_quotes(usable, order.side, order.open_units, limit_micros=order.limit_micros, at=now)
        listed = ", ".join(f"{each.dealer} {format_price(each.price_micros)} {verdict}" for each, verdict in ranked)
        best = next((each for each, verdict in ranked if verdict == Verdict.BEST), None)
        if best is None:
            return None, f"no quote can be taken ({listed or 'none came'}): at the limit"
        return best, f"the best of {len(ranked)} quotes: {listed}"

    async def _send(self, order: DealerOrder, link: DealerLink, quote: Quote | None, reason: str) -> None:
        """Commit the order as sent, then send it: once."""
        self._leaving.add(order.order_id)
        try:
            if link.is_on and await self._change(order, OrderStatus.SENT, reason[:500], link.dealer):
                await self._send_message(order, link, quote)
        finally:
            self._leaving.discard(order.order_id)

    async def _send_message(self, order: DealerOrder, link: DealerLink, quote: Quote | None) -> None:
        self._answer_by[order.order_id] = monotonic() + self._answer_seconds
        body = messages.new_order(
            order,
            self._bank.market.bill(order.cusip),
            await self._bank.now(),
            kind=link.config.price_type,
            price_micros=quote.price_micros if quote else order.limit_micros,
            quote=quote.reference if quote else None,
        )
        await link.send("D", body, about=order.order_id)

    def _is_on(self, dealer: str) -> bool:
        return dealer in self._links and self._links[dealer].is_on

    # -- with a dealer ------------------------------------------------------------------

    async def _follow(self, order: DealerOrder, link: DealerLink, *, needs_cancel: bool) -> None:
        """Ask about an order that is not answered; it becomes UNKNOWN if that is not answered either."""
        order_id = order.order_id
        if not link.is_on:
            if order.status in _WITH_A_DEALER and monotonic() - link.off_since > self._answer_seconds:
                await self._change(order, OrderStatus.UNKNOWN, "the session with the dealer is lost")
            return
        if needs_cancel:
            await self._ask_cancel(order, link)
        if order.status == OrderStatus.SENT:
            self._answer_by.setdefault(order_id, monotonic() + self._answer_seconds)
        if monotonic() < self._answer_by.get(order_id, float("inf")):
            return
        if order_id not in self._asked:
            await self._ask_status(order, link)
        elif order.status in _WITH_A_DEALER:
            self._answered(order_id)
            await self._change(order, OrderStatus.UNKNOWN, "the dealer does not answer")

    async def _ask_cancel(self, order: DealerOrder, link: DealerLink) -> None:
        body = messages.cancel_request(order, self._bank.market.bill(order.cusip), await self._bank.now())
        await link.send("F", body, about=order.order_id)

    async def _ask_status(self, order: DealerOrder, link: DealerLink) -> None:
        self._asked.add(order.order_id)
        self._answer_by[order.order_id] = monotonic() + self._answer_seconds
        body = messages.status_request(order, self._bank.market.bill(order.cusip))
        await link.send("H", body, about=order.order_id)

    def _answered(self, order_id: UUID) -> None:
        self._answer_by.pop(order_id, None)
        self._asked.discard(order_id)

    async def _opened(self, link: DealerLink) -> None:
        """Ask about every order of a dealer: what was sent last may not have arrived. Not about one that leaves now."""
        for each in await list_live_orders(self._bank.pool, self._bank_id):
            if each.dealer == link.dealer and each.order_id not in self._leaving:
                await self._ask_status(each, link)
                if each.cancel_asked:  # what was sent last is not repeated
                    await self._ask_cancel(each, link)

    async def _booked(self, message: StoredMessage, booked: Booked) -> None:
        if booked.order_id is None:
            return
        if message.type == "8":
            self._answered(booked.order_id)
        inquiry = self._inquiries.get(booked.order_id)
        if inquiry is not None and message.type in {"S", "AG", "3", "j"}:
            inquiry.waiting.discard(message.dealer)

    async def _change(self, order: DealerOrder, status: OrderStatus, reason: str, dealer: str | None = None) -> bool:
        return await change_order(self._bank, order.order_id, status, reason, dealer=dealer)


class DealerSessions:
    """A task of the worker: keeps the sessions of the bank's dealers, unless another process does."""

    def __init__(self) -> None:
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, bank: Bank) -> int:
        """Begin, or begin again, to keep the sessions. Raises what ended them."""
        if not bank.settings.dealer_sessions:
            return 0
        if self._running is not None and self._running.done():
            ended, self._running = self._running, None
            ended.result()
        if self._running is None:
            self._running = asyncio.create_task(_keep_sessions(bank))
        return 0

    async def aclose(self) -> None:
        """Let the sessions go."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)


async def _keep_sessions(bank: Bank) -> None:
    async with claimed(bank.pool, _CLAIM) as is_mine:
        if is_mine:
            try:
                await OrderRouter(bank).run()
            except SessionLost as lost:
                log.warning("dealer_sessions_taken", dealer=str(lost))
