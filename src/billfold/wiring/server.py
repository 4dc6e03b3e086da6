"""A bank becomes a server: all its houses, in a sandbox with the simulated world behind them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from uuid import UUID

from billfold.access.auth_server.app import create_auth_app
from billfold.access.pages.app import create_pages_app
from billfold.events.stream.broadcaster import Newsroom, newsroom_of
from billfold.http.customer_api.app import create_customer_app
from billfold.http.edge.lazy_app import LateApp
from billfold.http.partner_api.app import PartnerApi, create_partner_app, partner_operations
from billfold.ledger.bank import Bank
from billfold.payments.ach.inbound.files import AchGate
from billfold.payments.ach.nacha import NachaFiles
from billfold.payments.deposits.inbound import receive
from billfold.platform.garbage_collection import calm_collector
from billfold.platform.logs import configure_logs
from billfold.platform.settings.settings import Settings
from billfold.sandbox.ach.network import AchWorld
from billfold.sandbox.clock.stepper import Stepping
from billfold.sandbox.process_supervisor import end_with_parent
from billfold.sandbox.routes.routes import sandbox_operations
from billfold.sandbox.simulated_bank import SimulatedBank
from billfold.sandbox.simulation import AchOrder, Address, Sender
from billfold.wiring.fedwire import WireRoom
from billfold.wiring.host_router import Houses
from billfold.wiring.open_bank import open_bank


def partner_app() -> LateApp:
    """Return the whole server for one worker of the https server."""
    end_with_parent()
    settings = Settings.from_env(os.environ)
    configure_logs(settings.log_level)
    assert settings.database_url is not None

    @asynccontextmanager
    async def open_app() -> AsyncIterator[Houses]:
        async with open_bank(settings, settings.database_url or "") as bank:
            app = make_houses(bank, _newsroom(bank))
            calm_collector()
            yield app

    return LateApp(open_app)


def _newsroom(bank: Bank) -> Newsroom:
    """Return the newsroom of a worker. The server waits for answers: streams end when told to."""
    sandbox = not bank.settings.is_production
    made = Newsroom(bank.pool, sandbox=sandbox, on_open=lambda: _on_signals(made.stop))
    return made


def _on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` in this loop besides what happens when the process is told to end."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, partial(_both, loop, stop, signal.getsignal(number)))


def _both(
    loop: asyncio.AbstractEventLoop,
    stop: Callable[[], None],
    before: object,
    number: int,
    frame: FrameType | None,
) -> None:
    loop.call_soon_threadsafe(stop)
    if callable(before):
        before(number, frame)


def make_houses(bank: Bank, newsroom: Newsroom | None = None) -> Houses:
    """Return everything the server of a bank answers; both APIs tell events from one newsroom."""
    newsroom = newsroom or newsroom_of(bank)
    return Houses(
        bank.settings,
        partner=make_partner_app(bank, newsroom),
        auth=create_auth_app(bank),
        customer=create_customer_app(bank, newsroom=newsroom),
        pages=create_pages_app(bank),
    )


def make_partner_app(bank: Bank, newsroom: Newsroom | None = None) -> PartnerApi:
    """Return the Partner API of a bank; in a sandbox with the sandbox's operations."""
    if bank.settings.is_production:
        return create_partner_app(bank, operations=partner_operations(), newsroom=newsroom)
    api = build_sandbox_app()
    open_sandbox(api, bank, newsroom)
    return api


def build_sandbox_app() -> PartnerApi:
    """Return the Partner API with the sandbox's operations, and no bank behind it yet."""
    return PartnerApi(partner_operations(sandbox_operations()))


def open_sandbox(api: PartnerApi, bank: Bank, newsroom: Newsroom | None = None) -> None:
    """Let such an API serve a bank and its simulated world."""
    simulation = Simulated(SimulatedBank(bank.seed))
    api.open_bank(bank, newsroom, stepping=Stepping(bank), simulation=simulation)


class Simulated:
    """The simulated world: payments of the simulated bank, received like any other."""

    def __init__(self, correspondent: SimulatedBank) -> None:
        self.correspondent = correspondent
        self.wires = WireRoom().world
        self._ach = AchWorld(AchGate(NachaFiles()))

    async def send_ach_entry(self, bank: Bank, key: UUID, order: AchOrder) -> None:
        """Let an ACH file with one entry arrive. The same key arrives once."""
        await self._ach.send_entry(bank, key, order)

    async def return_ach_entry(self, bank: Bank, key: UUID, ach_id: UUID, code: str) -> None:
        """Let an entry that we sent come back. Raises Refused when it has not gone."""
        await self._ach.return_entry(bank, key, ach_id, code)

    async def change_ach_entry(
        self, bank: Bank, key: UUID, ach_id: UUID, code: str, corrected: str
    ) -> None:
        """Let the other bank correct an entry that we sent. Raises Refused when it has not gone."""
        await self._ach.change_entry(bank, key, ach_id, code, corrected)

    async def send_wire(
        self, bank: Bank, wire_id: UUID, to: Address, amount: int, sender: Sender
    ) -> bool:
        """Let a wire arrive by a file; tell whether it was booked."""
        return await self.wires.pay(bank, wire_id, to, amount, sender)

    async def send_ach_credit(
        self, bank: Bank, ach_id: UUID, to: Address, amount: int, company_name: str
    ) -> bool:
        """Let an ACH credit arrive; tell whether it was booked."""
        ach = self.correspondent.ach_credit(
            ach_id,
            routing_number=to.routing_number,
            account_number=to.account_number,
            amount=amount,
            company_name=company_name,
        )
        return (await receive(bank, self.correspondent, ach)).status == "COMPLETED"
