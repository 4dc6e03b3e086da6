"""A bank whose dealers send every byte that a test chooses."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from tests.support.whole_bank import close_bank, open_bank
from tests.trading.fix.simulated_desk import SimulatedDesk, until

from billfold.platform.money import cents_for
from billfold.platform.settings.trading_desk import DealerSession, PriceType
from billfold.trading.fix.codec import decode, encode, read_frame
from billfold.trading.fix.store import list_sessions


class ScriptedDealer:
    """Answers logons, status requests and logouts; everything else is what a test sends."""

    def __init__(self):
        self.received, self.next_out = [], 1
        self.writer: Any = None
        self.has_left = False

    async def accept(self, reader, writer):
        self.writer = writer
        try:
            while True:
                message = decode(await read_frame(reader))
                self.received.append(message)
                if message.type == "A":
                    if message.fields.get(141) == "Y":
                        self.next_out = 1
                    await self.send("A", [(98, 0), (108, 30)])
                elif message.type == "5":
                    if not self.has_left:
                        await self.send("5", [])
                    self.has_left = False
                    return
        except (EOFError, OSError):
            return
        finally:
            writer.transport.abort()

    async def send(self, kind, body, *, seq=None, extra=(), sender="DEALER"):
        number, self.has_left = seq or self.next_out, kind == "5"
        self.next_out = self.next_out if seq else number + 1
        header = [(49, sender), (56, "BANK"), (34, number), *extra, (52, "20250602-13:00:00.000")]
        self.writer.write(encode(kind, header, body))
        await self.writer.drain()

    def of_type(self, kind):
        return [each for each in self.received if each.type == kind]


@asynccontextmanager
async def scripted_desk(dsn, *, tls=None, names=("citadel",), logon_seconds=10, **settings):
    dealers = [ScriptedDealer() for _ in names]
    servers = [await asyncio.start_server(each.accept, "127.0.0.1", 0, ssl=tls) for each in dealers]
    ports = [each.sockets[0].getsockname()[1] for each in servers]
    host, is_plain = ("localhost", False) if tls else ("127.0.0.1", True)
    sessions = tuple(
        DealerSession(name, "BANK", "DEALER", host, port, PriceType.PRICE, is_plain=is_plain)
        for name, port in zip(names, ports, strict=True)
    )
    bank = await open_bank(dsn, dealers=names, dealer_sessions=sessions, **settings)
    desk = SimulatedDesk(bank, None)
    try:
        async with desk.routing():

            async def all_on():
                return sum(each.is_on for each in await list_sessions(bank.pool)) == len(names)

            await until(all_on, logon_seconds)
            yield desk, *dealers
    finally:
        for each in servers:
            each.close()
        await close_bank(bank)


def fill_of(order, *, reference="T-1", units=None, **changes):
    """Return the report of a fill; `changes` are tags like t118, left out if None."""
    units, price = units or order.units, order.mark_micros
    money = cents_for(units, price)
    amount = f"{money // 100}.{money % 100:02}"
    fields = {11: order.order_id, 17: reference, 150: "F", 39: "2", 48: order.cusip, 54: "1", 32: units * 100}
    fields |= {31: f"{price / 1e6:.6f}", 118: amount, 381: amount, 60: "20250602-13:00:00.000", 151: 0, 14: units * 100}
    fields |= {int(name[1:]): value for name, value in changes.items()}
    return [(tag, value) for tag, value in fields.items() if value is not None]
