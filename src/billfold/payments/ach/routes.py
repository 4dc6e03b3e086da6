"""ACH originations: payments to counterparties' bank accounts, and collections from them."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.customers.store import list_features
from billfold.http.operations import get, post
from billfold.http.parameters import ListQuery, Query, page_of, searched_page_of, texts_among
from billfold.http.schemas import CursorList, SearchedList
from billfold.identity.partners.caller import Caller
from billfold.ledger import types
from billfold.ledger.bank import Bank
from billfold.payments.ach import store
from billfold.payments.ach.commands import OriginateAch
from billfold.payments.ach.schemas import AchOrigination, CreateAch, render_origination
from billfold.platform.errors import NotFound, Refused

CCD_FEATURE = "ccd"
"""The feature a partner needs to originate CCD entries."""
STATUSES = frozenset({"PENDING", "APPROVED", "IN_TRANSIT", "PROCESSED", "REJECTED", "FAILED", "CANCELLED"})
Returned = Annotated[bool | None, Query(description="true are those that were returned, false all others.")]
Statuses = Annotated[list[str] | None, texts_among("filter[status]", STATUSES)]
Direction = Literal["CREDIT", "DEBIT"] | None


@post(
    "/api/v1/service-accounts/{account_id}/ach-originating/",
    status=200,
    tag="ach",
    moves_money=True,
    refuses=(
        "sec-code-not-enabled",
        "customer-not-open",
        "agreement-not-accepted",
        "pocket-not-open",
        "pocket-frozen",
        "counterparty-type-mismatch",
        "counterparty-not-verified",
        "sanction-screen-failed",
        "insufficient-funds",
    ),
)
async def create_ach_origination(caller: Caller, bank: Bank, account_id: UUID, data: CreateAch) -> AchOrigination:
    """Create ACH origination

    A CREDIT debits the Pocket at once; the entry is sent in its window.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    description = data.description
    if data.sec_code == "CCD" and CCD_FEATURE not in await list_features(bank.pool, owner):
        raise Refused(
            "sec-code-not-enabled",
            "CCD entries are not enabled for this customer. Use WEB or PPD, or ask the bank to enable `ccd`.",
        )
    ach_id = caller.new_resource_id(bank.seed)
    await bank.engine.submit(
        OriginateAch(
            **caller.command_fields(owner),
            references=(data.counterparty_id,),
            ach_id=ach_id,
            pocket_id=pocket_id,
            counterparty_id=data.counterparty_id,
            direction=types.Direction(data.direction),
            sec_code=data.sec_code,
            description=description,
            lines=tuple(data.payment_related_information),
            amount=data.amount_usdc,
            history=await store.read_history(bank.pool, owner, caller.now),
            request=msgspec.json.encode(data).decode(),
        )
    )
    return render_origination(await store.get_origination(bank.pool, owner, ach_id), bank.calendars)


@get("/api/v1/service-accounts/{account_id}/ach-originating/", tag="ach")
async def list_account_ach_originations(
    caller: Caller,
    bank: Bank,
    account_id: UUID,
    page_query: ListQuery,
    statuses: Statuses = None,
    direction: Direction = None,
) -> CursorList[AchOrigination]:
    """List account ACH originations

    Returns the originations of one account, newest first.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    return await _page(bank, owner, pocket_id, page_query=page_query, statuses=statuses, direction=direction)


@get("/api/v1/service-accounts/{account_id}/ach-originating/{transfer_id}/", tag="ach")
async def get_ach_origination(caller: Caller, bank: Bank, account_id: UUID, transfer_id: UUID) -> AchOrigination:
    """Get ACH origination

    Returns an origination with its status.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    entry = await store.get_origination(bank.pool, owner, transfer_id)
    if entry.pocket_id != pocket_id:
        raise NotFound("There is no such ACH origination.")
    return render_origination(entry, bank.calendars)


@get("/api/v1/customers/{customer_id}/ach-originating/", tag="ach")
async def list_customer_ach_originations(
    caller: Caller,
    bank: Bank,
    customer_id: UUID,
    page_query: ListQuery,
    statuses: Statuses = None,
    direction: Direction = None,
) -> CursorList[AchOrigination]:
    """List customer ACH originations

    Returns the originations of all accounts of a customer, newest first.
    """
    owner = await caller.owner(bank, customer_id)
    return await _page(bank, owner, None, page_query=page_query, statuses=statuses, direction=direction)


@get("/api/v1/ach-originating/", tag="ach")
async def list_ach_originations(
    *,
    caller: Caller,
    bank: Bank,
    page_query: ListQuery,
    statuses: Statuses = None,
    direction: Direction = None,
    returned: Returned = None,
) -> SearchedList[AchOrigination]:
    """List ACH originations

    Returns the originations of all customers, newest first.
    """
    values = (sorted(statuses) if statuses else None, direction, returned)
    page = await page_query.read(
        bank, store.ORIGINATIONS_OF_PARTNER, caller.partner_id, *values, scope="ach-originations"
    )
    return searched_page_of(page, [render_origination(row, bank.calendars) for row in page.items])


async def _page(
    bank: Bank,
    owner: UUID,
    pocket_id: UUID | None,
    page_query: ListQuery,
    statuses: list[str] | None,
    direction: str | None,
) -> CursorList[AchOrigination]:
    page = await page_query.read(
        bank,
        store.ORIGINATIONS,
        owner,
        pocket_id,
        sorted(statuses) if statuses else None,
        direction,
        scope=f"ach:{owner}:{pocket_id}",
    )
    return page_of(page, [render_origination(row, bank.calendars) for row in page.items])
