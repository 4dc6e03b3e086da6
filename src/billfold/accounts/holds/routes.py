"""Holds on a Pocket, in both APIs. They are captured by transfers that name them."""

from typing import Annotated
from uuid import UUID

from billfold.accounts.holds import commands, store
from billfold.accounts.holds.schemas import CreateHold, PocketHold, render_hold
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get, post, with_scope
from billfold.http.parameters import ListQuery, page_of, texts_among
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank
from billfold.platform.database.paging import list_as_of
from billfold.platform.errors import InvalidInput

READS, WRITES = with_scope("pockets.read", "holds"), with_scope("transfers.write", "holds")
_ALL = "/api/v2/pockets/{pocket_id}/holds/"
_ONE = f"{_ALL}{{hold_id}}/"
Statuses = Annotated[list[str] | None, texts_among("filter[status]", frozenset(commands.HoldStatus))]


@post(
    _ALL,
    SIGNED,
    WRITES,
    tag="holds",
    moves_money=True,
    previews=True,
    refuses=("customer-not-open", "pocket-not-open", "pocket-frozen", "insufficient-funds", "too-many-holds"),
)
async def place_hold(caller: Call, bank: Bank, pocket_id: UUID, data: CreateHold) -> PocketHold:
    """Place hold.

    Keeps money in the Pocket: nothing but a transfer that names the hold can use it until it expires or is released.
    No bill is sold: they keep earning until the hold is captured.
    """
    owner, own_id = await caller.pocket(bank, pocket_id)
    until = data.expires_at or caller.now + commands.DURATION
    if not caller.now < until <= caller.now + commands.DURATION_MAX:
        raise InvalidInput.at("body", "expires_at", msg=f"must be within {commands.DURATION_MAX.days} days from now")
    hold_id = caller.new_resource_id(bank.seed)
    await bank.engine.submit(
        commands.PlaceHold(
            **caller.command_fields(owner),
            hold_id=hold_id,
            pocket_id=own_id,
            amount=data.amount_usdc,
            until=until,
            reason=data.reason,
        )
    )
    return render_hold(await store.get_hold(bank.pool, owner, own_id, hold_id))


@get(_ALL, SIGNED, READS, tag="holds", as_of=True)
async def list_holds(
    caller: Call, bank: Bank, pocket_id: UUID, wanted: ListQuery, statuses: Statuses = None
) -> CursorList[PocketHold]:
    """List holds.

    Returns the holds of a Pocket, newest first.
    """
    owner, own_id = await caller.pocket(bank, pocket_id)
    listed, then = list_as_of(store.HOLDS, store.HOLDS_THEN, caller.as_of)
    page = await wanted.read(bank, listed, owner, own_id, statuses, *then, scope="holds")
    return page_of(page, [render_hold(row) for row in page.items])


@get(_ONE, SIGNED, READS, tag="holds", as_of=True)
async def get_hold(caller: Call, bank: Bank, pocket_id: UUID, hold_id: UUID) -> PocketHold:
    """Get hold."""
    owner, own_id = await caller.pocket(bank, pocket_id)
    return render_hold(await store.get_hold(bank.pool, owner, own_id, hold_id, caller.as_of))


@post(
    f"{_ONE}release/",
    SIGNED,
    WRITES,
    tag="holds",
    status=200,
    moves_money=True,
    previews=True,
    refuses=("hold-not-active",),
)
async def release_hold(caller: Call, bank: Bank, pocket_id: UUID, hold_id: UUID) -> PocketHold:
    """Release hold.

    Ends the hold: what it still keeps can be used again. What was captured stays paid.
    """
    owner, own_id = await caller.pocket(bank, pocket_id)
    row = await store.get_hold(bank.pool, owner, own_id, hold_id)
    fields = caller.command_fields(owner)
    await bank.engine.submit(commands.ReleaseHold(**fields, references=(row.hold_id,), hold_id=row.hold_id))
    return render_hold(await store.get_hold(bank.pool, owner, own_id, hold_id))
