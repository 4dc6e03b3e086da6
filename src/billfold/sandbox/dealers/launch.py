"""The process of the simulated dealers as the sandbox starts it, and rounds that wait for what they answer."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from billfold.cli.python_process import python_command
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.clock import monotonic
from billfold.platform.errors import Refused
from billfold.platform.settings.settings import Settings
from billfold.platform.settings.trading_desk import DealerSession, PriceType
from billfold.sandbox.dealers.books import DEALERS
from billfold.trading.settlement.store import list_open
from billfold.trading.settlement.types import InstructionStatus
from billfold.trading.store import list_live_orders
from billfold.trading.types import OrderStatus
from billfold.trading.worker import place_round

log = structlog.get_logger(__name__)

DEALER_FOLDER: Final = "dealers"
"""The folder of the dealers in the bank's state directory."""
BANK_NAME: Final = "BILLFOLD"
COVER_SECONDS: Final = 5.0
"""Real time for the dealers to answer a round."""
_POLL_SECONDS: Final = 0.02
_NOT_ANSWERED: Final = frozenset({InstructionStatus.NEW, InstructionStatus.SENT})
_BACKLOG: Final = 8


def listen_to_bank() -> socket.socket:
    """Listen on a free port of this machine; the process of the dealers inherits the socket."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(_BACKLOG)
    return listener


def dealer_sessions(port: int) -> tuple[DealerSession, ...]:
    """Return the sessions of a sandbox's bank with its dealers."""
    price = PriceType.PRICE
    return tuple(
        DealerSession(name, BANK_NAME, name.upper(), "127.0.0.1", port, price, is_plain=True) for name in DEALERS
    )


def dealers_command(settings: Settings) -> Sequence[str]:
    """Return the command line of the process of the dealers."""
    folder = settings.state_dir / DEALER_FOLDER
    return python_command("-m", "billfold.sandbox.dealers.server", str(folder), str(settings.desk_max_slippage_bps))


def folder_of(state_dir: Path, dealer: str) -> Path:
    """Return the folder of a dealer."""
    return state_dir / DEALER_FOLDER / dealer


async def cover_and_wait(bank: Bank) -> None:
    """Place orders for everything that is not covered, and wait until dealers have ended them and the custodian knows.

    A bank without sessions places none. What a dealer leaves open after a while stays open.
    """
    if not bank.settings.dealer_sessions:
        return
    try:
        await place_round(bank, is_due=True, origin=Origin.system())
    except Refused as refusal:  # paused, or a round at the same time
        log.info("desk_round_refused", reason=refusal.detail)
    ends = monotonic() + COVER_SECONDS
    bank_id = bank.own_id
    while monotonic() < ends:
        live = await list_live_orders(bank.pool, bank_id)
        if all(each.status == OrderStatus.UNKNOWN for each in live):
            await scheduler.run_scheduled_jobs(bank, await bank.now())  # here or in a worker: the clock counts none
            told = await list_open(bank.pool, bank_id)
            if not any(each.status in _NOT_ANSWERED for each in told):
                return
        await asyncio.sleep(_POLL_SECONDS)
