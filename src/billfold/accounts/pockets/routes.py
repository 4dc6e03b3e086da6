"""Pockets, and accounts, their older form in v1."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.notes.schemas import NewNote, NoteQuery
from billfold.accounts.notes.store import find_noted, note_fields, show_notes, terms_of
from billfold.accounts.pockets import commands, requests, store
from billfold.accounts.pockets.requests import OmitQuery
from billfold.accounts.pockets.schemas import Account, Pocket, accrued_cents, render_account, render_pocket, valuation
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, Deprecation, MaybeInPath, get, patch, post, with_scope
from billfold.http.parameters import Limit, ListQuery, Offset, Query, page_of
from billfold.http.schemas import Amount, CursorList, OffsetList, format_appreciation, usd
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank, limit_usage
from billfold.oauth.caller import CustomerCaller
from billfold.platform.database.paging import LIMIT_DEFAULT, Page
from billfold.platform.errors import NotFound

READS, WRITES = with_scope("pockets.read", "pockets"), with_scope("pockets.write", "pockets")
V1_READS = Deprecation(since=date(2025, 1, 6), sunset=date(2027, 1, 6))
_ACCOUNTS_MAX = 1000
_OPEN_REFUSES = ("customer-not-open", "agreement-not-accepted", "external-id-taken", "usage-limit-reached")
_UPDATE_REFUSES = (
    "pocket-not-open",
    "customer-not-open",
    "pocket-not-empty",
    "last-open-pocket",
    "pocket-strategy-locked",
    "external-id-taken",
)


class CreateOwnPocket(NewNote, forbid_unknown_fields=True, kw_only=True):
    """A new Pocket. `trading_strategy_id` sets both strategies."""

    pocket_name: requests.PocketName
    deposit_strategy_id: str | None = None
    reinvestment_strategy_id: str | UnsetType | None = UNSET
    trading_strategy_id: str | None = None


class CreatePocket(CreateOwnPocket, kw_only=True):
    """A new Pocket. `pocket_configuration_id` and `trading_strategy_id` each set both strategies."""

    pocket_configuration_id: str | None = None


@post("/api/v2/customers/{customer_id}/pockets/", takes=CreatePocket, refuses=_OPEN_REFUSES)
@post("/api/v2/pockets/", WRITES, refuses=_OPEN_REFUSES)
async def create_pocket(caller: Call, bank: Bank, customer_id: MaybeInPath, data: CreateOwnPocket) -> Pocket:
    """Create Pocket.

    It opens with its first portal. Money that arrives there is invested in T-bills at once.
    """
    owner = await caller.owner(bank, customer_id)
    command = await open_pocket_command(caller, bank, owner, data=data)
    await limit_usage(bank, "pockets", owner)
    answer = await bank.engine.submit(command)
    row = await store.get_pocket(bank.pool, owner, UUID(answer.outcome["pocket_id"]))
    return (await _show(bank, [row], [render_pocket(row, bank, caller.now)]))[0]


async def open_pocket_command(caller: Call, bank: Bank, owner: UUID, *, data: CreateOwnPocket) -> commands.OpenPocket:
    """Return the command that opens a Pocket of a customer. Raises InvalidInput."""
    deposit, reinvestment = requests.resolve_strategies(
        data.deposit_strategy_id,
        data.reinvestment_strategy_id,
        pocket_configuration_id=data.pocket_configuration_id if isinstance(data, CreatePocket) else None,
        trading_strategy_id=data.trading_strategy_id,
    )
    return commands.OpenPocket(
        **caller.command_fields(owner),
        **await note_fields(bank, owner, "pocket", data),
        partner_id=caller.partner_id,
        name=data.pocket_name,
        deposit_weeks=deposit,
        reinvestment_weeks=reinvestment,
    )


@get("/api/v2/customers/{customer_id}/pockets/", as_of=True)
async def list_customer_pockets(
    caller: Caller,
    bank: Bank,
    customer_id: UUID,
    wanted: ListQuery,
    query: OmitQuery,
    notes: NoteQuery,
    status: requests.Statuses = None,
) -> CursorList[Pocket]:
    """List Pockets of a customer.

    Returns Pockets, newest first.
    """
    owner = await caller.owner(bank, customer_id)
    shown: dict[str, Any] = {"omit": query.parse_omit}
    if (external_id := notes.require_alone(status)) is not None:
        found = await _find_pockets(caller, bank, owner, external_id=external_id, **shown)
        return page_of(Page(found), found)
    terms = await terms_of(bank, owner, "pocket", notes)
    return await _list_pockets(caller, bank, wanted, owners=[owner], filters=(status, terms), **shown)


@get("/api/v2/pockets/", refuses=("not-found",), as_of=True)
async def list_pockets(
    caller: Caller,
    bank: Bank,
    wanted: ListQuery,
    query: OmitQuery,
    status: requests.Statuses = None,
    customer_id: Annotated[list[UUID] | None, Query(name="customer_id[]")] = None,
    valuation_type: Literal["MARK", "REAL_TIME"] | None = None,
) -> CursorList[Pocket]:
    """List Pockets.

    Returns Pockets of several customers, newest first. `valuation_type` REAL_TIME values them at the second, MARK
    (the default) at the last minute of the market.
    """
    owners = None
    if customer_id is not None:
        owners = [await caller.owner(bank, each) for each in dict.fromkeys(customer_id)]
    shown = {"omit": query.parse_omit, "real_time": valuation_type == "REAL_TIME"}
    filters = (status,) if owners is None else (status, None)
    return await _list_pockets(caller, bank, wanted, owners=owners, filters=filters, **shown)


@get("/api/v2/pockets/", READS, name="list_pockets", refuses=("not-found",), as_of=True)
async def list_own_pockets(
    *,
    member: CustomerCaller,
    bank: Bank,
    offset: Offset = 0,
    limit: Limit = LIMIT_DEFAULT,
    query: OmitQuery,
    notes: NoteQuery,
    status: requests.Statuses = None,
    pocket_id: Annotated[list[UUID] | None, Query(name="pocket_id[]", description="Only these.")] = None,
) -> OffsetList[Pocket]:
    """List Pockets.

    Returns Pockets, newest first; `count` is the number of all of them, or of those named.
    """
    omitted_parts, owner = query.parse_omit, await member.owner(bank, None)
    if (external_id := notes.require_alone(status, pocket_id)) is not None:
        found = await _find_pockets(member, bank, owner, external_id=external_id, omit=omitted_parts)
        return OffsetList(offset=0, count=len(found), items=found)
    await _require_own(bank, member, pocket_id)
    terms = await terms_of(bank, owner, "pocket", notes)
    count, rows = await store.list_page_by_offset(
        bank.pool,
        owner,
        statuses=status,
        pocket_ids=pocket_id,
        terms=terms,
        offset=offset,
        limit=limit,
        as_of=member.as_of,
    )
    items = [render_pocket(row, bank, member.now, omit=omitted_parts) for row in rows]
    return OffsetList(offset=offset, count=count, items=await _show(bank, rows, items))


@get("/api/v2/customers/{customer_id}/pockets/{pocket_id}/", name="get_customer_pocket", as_of=True)
@get("/api/v2/pockets/{pocket_id}/", SIGNED, READS, as_of=True)
async def get_pocket(caller: Call, bank: Bank, customer_id: MaybeInPath, pocket_id: UUID, query: OmitQuery) -> Pocket:
    """Get Pocket.

    Returns the Pocket with its portfolio.
    """
    key = await caller.pocket(bank, pocket_id, customer_id)
    row = await store.get_pocket(bank.pool, *key, as_of=caller.as_of)
    return (await _show(bank, [row], [render_pocket(row, bank, caller.now, omit=query.parse_omit)]))[0]


@patch("/api/v2/customers/{customer_id}/pockets/{pocket_id}/", refuses=_UPDATE_REFUSES, previews=True)
@patch("/api/v2/pockets/{pocket_id}/", WRITES, refuses=_UPDATE_REFUSES, previews=True)
async def update_pocket(
    caller: Call, bank: Bank, customer_id: MaybeInPath, pocket_id: UUID, data: requests.ChangePocket
) -> Pocket:
    """Update Pocket.

    Renames it, changes its strategies, or closes it if it is empty and not the last. Closing charges its
    fee; remaining cash below the price of a bill is paid into another Pocket of the customer.
    """
    owner, own_id = await caller.pocket(bank, pocket_id, customer_id)
    await bank.engine.submit(await requests.update_pocket_command(caller, bank, (owner, own_id), data=data))
    row = await store.get_pocket(bank.pool, owner, own_id)
    return (await _show(bank, [row], [render_pocket(row, bank, caller.now, with_customer_id=False)]))[0]


async def _show(bank: Bank, rows: Sequence[commands.PocketRow], shown: list[Pocket]) -> list[Pocket]:
    """Return Pockets for display with their notes."""
    return await show_notes(
        bank, {(row.customer_id, row.pocket_id): each for row, each in zip(rows, shown, strict=True)}
    )


async def _find_pockets(caller: Call, bank: Bank, owner: UUID, *, external_id: str, **shown: Any) -> list[Pocket]:
    """Return the Pocket with an external id, if there is one."""
    rows = await find_noted(
        bank, owner, "pocket", external_id, get=partial(store.get_pocket, bank.pool, owner, as_of=caller.as_of)
    )
    return await _show(bank, rows, [render_pocket(row, bank, caller.now, **shown) for row in rows])


class Accounts(msgspec.Struct, kw_only=True):
    """The accounts of a customer, v1."""

    count: int
    items: list[Account]
    object_type: Literal["List"] = "List"


@get("/api/v1/customers/{customer_id}/service-accounts/", tag="accounts", deprecated=V1_READS, as_of=True)
async def list_accounts(caller: Caller, bank: Bank, customer_id: UUID) -> Accounts:
    """List accounts.

    Returns accounts of a customer. Use the Pockets of v2 instead.
    """
    owner = await caller.owner(bank, customer_id)
    listed, then = store.pockets_of(of_customers=True, as_of=caller.as_of)
    rows = await listed.rows(bank.pool, [owner], None, *then, None, limit=_ACCOUNTS_MAX)
    items = [render_account(row, bank, caller.now) for row in rows]
    return Accounts(count=len(items), items=items)


@get("/api/v1/service-accounts/{account_id}/", tag="accounts", deprecated=V1_READS, as_of=True)
async def get_account(caller: Caller, bank: Bank, account_id: UUID) -> Account:
    """Get account.

    Use the Pocket of v2 instead.
    """
    owner, own_id = await caller.pocket(bank, account_id)
    row = await store.get_pocket(bank.pool, owner, own_id, caller.as_of)
    return render_account(row, bank, caller.now)


async def _require_own(bank: Bank, member: CustomerCaller, pocket_ids: list[UUID] | None) -> None:
    """Refuse ids that are not among the customer's Pockets. Raises NotFound."""
    if pocket_ids and not {*pocket_ids} <= {
        *await store.list_ids(bank.pool, member.customer_id, pocket_ids, member.as_of)
    }:
        raise NotFound("There is no such pocket.")


async def _list_pockets(
    caller: Caller, bank: Bank, wanted: ListQuery, owners: list[UUID] | None, filters: tuple[Any, ...], **shown: Any
) -> CursorList[Pocket]:
    listed, then = store.pockets_of(of_customers=owners is not None, as_of=caller.as_of)
    statuses, *rest = filters
    of = caller.partner_id if owners is None else owners
    page = await wanted.read(bank, listed, of, statuses, *then, *rest, scope="pockets")
    items = [render_pocket(row, bank, caller.now, **shown) for row in page.items]
    return page_of(page, await _show(bank, page.items, items))


_FACE_CENTS = 100_00


class MaturingBills(msgspec.Struct, kw_only=True):
    """The face value of the bills that mature on a date."""

    maturity_date: date
    face_value: Amount


class TotalPortfolio(msgspec.Struct, kw_only=True):
    """The sums over all Pockets that are not closed, and upcoming maturities, next first.

    `appreciation_per_second` covers only Pockets with real-time yield.
    """

    pockets: int
    total_value: Amount
    cash: Amount
    liquidation_value_t0: Amount
    liquidation_value_t1: Amount
    fees: Amount
    owed: Amount
    held: Amount
    appreciation_per_second: str
    maturities: list[MaturingBills]
    object_type: Literal["TotalPortfolio"] = "TotalPortfolio"


@get("/api/v2/customers/{customer_id}/portfolio/", tag="pockets", as_of=True)
@get("/api/v2/portfolio/", READS, tag="pockets", as_of=True)
async def get_portfolio(caller: Call, bank: Bank, customer_id: MaybeInPath) -> TotalPortfolio:
    """Get portfolio of all Pockets.

    Returns the holdings of a customer over all Pockets. `GET /api/v2/pockets/explain/` explains each sum.
    """
    now = caller.now
    rows = await store.list_not_closed(bank.pool, await caller.owner(bank, customer_id), caller.as_of)
    fees = [accrued_cents(row, bank, now) for row in rows]
    values = [valuation(row, bank, now, fees=accrued) for row, accrued in zip(rows, fees, strict=True)]
    slopes = [each.appreciation_per_second for row, each in zip(rows, values, strict=True) if row.real_time_yield]
    face: Counter[date] = Counter()
    for each in values:
        for held in each.positions:
            face[held.bill.maturity] += held.units * _FACE_CENTS
    return TotalPortfolio(
        pockets=len(rows),
        total_value=usd(sum(each.total_value for each in values)),
        cash=usd(sum(row.cash for row in rows)),
        liquidation_value_t0=usd(sum(each.liquidation_value_t0 for each in values)),
        liquidation_value_t1=usd(sum(each.liquidation_value_t1 for each in values)),
        fees=usd(sum(fees)),
        owed=usd(sum(row.owed for row in rows)),
        held=usd(sum(row.held_cents(now, bank.calendars) for row in rows)),
        appreciation_per_second=format_appreciation(sum(slopes, Decimal(0))),
        maturities=[MaturingBills(maturity_date=day, face_value=usd(face[day])) for day in sorted(face)],
    )
