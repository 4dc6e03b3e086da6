"""The simulated dealers: what they executed, what they are asked to do next, and a round that waits for them."""

import asyncio
from typing import Literal

import msgspec

from billfold.http.operations import TOKEN, get
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.errors import NotFound
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

_SHOWN = 100
_ORDERS = "SELECT order_id FROM dealer_order WHERE customer_id = $1 AND business_date = $2"


class BehaviorRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A misbehavior with the next request or order; CORRECT and BUST are done to the last execution at once.

    DOWN lasts until another behavior is asked for, or none: null.
    """

    behavior: Behavior | None


class SandboxDealer(msgspec.Struct, kw_only=True):
    """A dealer, what it is asked to do next, and its last executions by its own books, newest first."""

    name: str
    behavior: str | None
    executions: list[DealerExecution]
    object_type: Literal["SandboxDealer"] = "SandboxDealer"


class SandboxDealers(msgspec.Struct, kw_only=True):
    """All dealers."""

    items: list[SandboxDealer]


class SandboxCover(msgspec.Struct, kw_only=True):
    """The executions of the orders of the business date, after a round."""

    executions: list[DealerExecution]
    object_type: Literal["SandboxCover"] = "SandboxCover"


@get("/api/v1/sandbox/dealers/", TOKEN, name="sandbox_dealers", tag="sandbox")
async def list_dealers(bank: Bank) -> SandboxDealers:
    """List the simulated dealers."""
    return SandboxDealers(items=await asyncio.to_thread(_read_dealers, bank))


def _read_dealers(bank: Bank) -> list[SandboxDealer]:
    folders = {name: folder_of(bank.settings.state_dir, name) for name in DEALERS}
    return [
        SandboxDealer(name=name, behavior=pending_behavior(each), executions=read_executions(each)[: -_SHOWN - 1 : -1])
        for name, each in folders.items()
    ]


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
    await cover_and_wait(bank)
    today = bank.calendars.business_date(await bank.now())
    orders = {str(row["order_id"]) for row in await bank.pool.fetch(_ORDERS, bank.own_id, today)}
    dealers = await asyncio.to_thread(_read_dealers, bank)
    return SandboxCover(executions=[e for dealer in dealers for e in dealer.executions if e.order_id in orders])
