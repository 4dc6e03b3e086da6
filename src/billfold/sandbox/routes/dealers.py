"""The simulated dealers: what they executed, what they are asked to do next, and a round that waits for them."""

import asyncio
from typing import Literal

import msgspec

from billfold.http.operations import TOKEN, get
from billfold.http.schemas import Amount, usd
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.scheduler import bank_customer_id
from billfold.platform.errors import NotFound
from billfold.platform.money import format_price
from billfold.sandbox.dealers.books import (
    DEALERS,
    Behavior,
    DealerExecution,
    ask_behavior,
    pending_behavior,
    read_executions,
)
from billfold.sandbox.dealers.launch import cover_and_wait, folder_of
from billfold.sandbox.routes.operations import require_first_partner, sandbox_post
from billfold.trading.store import list_executions, list_live_orders
from billfold.trading.types import Execution

_SHOWN = 100


class BehaviorRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the dealer does with the next request or order; CORRECT and BUST are done to its last execution at once."""

    behavior: Behavior


class DealerFill(msgspec.Struct, kw_only=True):
    """A fill, correction or bust: what the bank did, the face value in dollars, the price per $100."""

    dealer: str
    reference: str
    kind: str
    side: str
    cusip: str
    face: int
    price: str
    amount: Amount


class SandboxDealer(msgspec.Struct, kw_only=True):
    """A dealer, what it is asked to do next, and its last executions by its own books, newest first."""

    name: str
    behavior: str | None
    executions: list[DealerFill]
    object_type: Literal["SandboxDealer"] = "SandboxDealer"


class SandboxDealers(msgspec.Struct, kw_only=True):
    """All dealers."""

    items: list[SandboxDealer]


class SandboxCover(msgspec.Struct, kw_only=True):
    """A round: the executions that the bank booked of its orders, and the number of its orders that are still live."""

    executions: list[DealerFill]
    live_orders: int
    object_type: Literal["SandboxCover"] = "SandboxCover"


@get("/api/v1/sandbox/dealers/", TOKEN, name="sandbox_dealers", tag="sandbox")
async def list_dealers(bank: Bank) -> SandboxDealers:
    """List the simulated dealers."""
    return await asyncio.to_thread(_read_dealers, bank)


def _read_dealers(bank: Bank) -> SandboxDealers:
    folders = {name: folder_of(bank.settings.state_dir, name) for name in DEALERS}
    return SandboxDealers(
        items=[
            SandboxDealer(
                name=name,
                behavior=pending_behavior(folder),
                executions=[_fill(name, each, face=each.face) for each in reversed(read_executions(folder)[-_SHOWN:])],
            )
            for name, folder in folders.items()
        ]
    )


@sandbox_post(
    "dealers/{dealer}/behavior/", name="sandbox_dealer_behavior", refuses=("sandbox-of-another-partner", "not-found")
)
async def set_behavior(caller: Caller, bank: Bank, dealer: str, data: BehaviorRequest) -> None:
    """Let a dealer misbehave once: with its next request or order, or with its last execution."""
    await require_first_partner(bank, caller)
    if dealer not in DEALERS:
        raise NotFound(f"There is no such dealer. Dealers: {', '.join(DEALERS)}.")
    await asyncio.to_thread(ask_behavior, folder_of(bank.settings.state_dir, dealer), data.behavior)


@sandbox_post("dealers/cover/", name="sandbox_cover", status=200, refuses=("sandbox-of-another-partner",))
async def cover(caller: Caller, bank: Bank) -> SandboxCover:
    """Buy or sell now what the bank's customers bought or sold, and wait a few seconds for the dealers."""
    await require_first_partner(bank, caller)
    orders, bank_id = await cover_and_wait(bank), bank_customer_id(bank.seed)
    found = [each.row for each in await list_executions(bank.pool, bank_id, _SHOWN) if str(each.row.order_id) in orders]
    return SandboxCover(
        executions=[_fill(each.dealer, each, face=each.units * 100) for each in found],
        live_orders=len(await list_live_orders(bank.pool, bank_id)),
    )


def _fill(dealer: str, row: DealerExecution | Execution, *, face: int) -> DealerFill:
    named = {name: getattr(row, name) for name in ("reference", "kind", "side", "cusip")}
    return DealerFill(dealer=dealer, **named, face=face, price=format_price(row.price_micros), amount=usd(row.money))
