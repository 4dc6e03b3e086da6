"""What is said of a portal when it is opened, changed or listed, in the words of both APIs."""

from __future__ import annotations

from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from billfold.accounts.commands import OpenPortal
from billfold.accounts.customers.schemas import address_of, format_address
from billfold.accounts.portals import store as portal_store
from billfold.accounts.portals.rules import BANK_RAILS
from billfold.accounts.portals.schemas import Beneficiary, Portal, render_portal
from billfold.accounts.portals.types import PortalRow
from billfold.http.caller import Call
from billfold.http.list_params import ListQuery, page_of, texts_among
from billfold.http.schemas.pages import CursorList
from billfold.http.schemas.texts import NOT_BLANK
from billfold.ledger.bank import Bank
from billfold.ledger.directory.types import CustomerRow
from billfold.platform.errors import InvalidInput, Refused

BANK_TYPE: Final = "BANK_VIRTUAL_ACCOUNT_PORTAL"
CRYPTO_TYPE: Final = "CRYPTO_DEPOSIT_ADDRESS_PORTAL"
Rail = Literal["ACH", "WIRE", "INTERNATIONAL_WIRE", "ON_US"]
NewName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=NOT_BLANK)]
OtherName = Annotated[str, msgspec.Meta(min_length=1, max_length=50, pattern=NOT_BLANK)]
Types = Annotated[
    list[str] | None, texts_among("type[]", frozenset({BANK_TYPE, CRYPTO_TYPE}), description="Portal types.")
]


class CreatePortal(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A portal of v2; `payment_rails` narrows what it takes."""

    name: NewName
    type: Literal["BANK_VIRTUAL_ACCOUNT_PORTAL", "CRYPTO_DEPOSIT_ADDRESS_PORTAL"] = BANK_TYPE
    chain: str | None = None
    payment_rails: Annotated[list[Rail], msgspec.Meta(min_length=1)] | None = None


def check_portal_type(data: CreatePortal) -> None:
    """Raise Refused or InvalidInput unless it is a portal that can be opened here."""
    if data.type == CRYPTO_TYPE:
        raise Refused("rail-not-available", "Crypto deposit addresses are not available here.")
    if data.chain is not None:
        raise InvalidInput.at("body", "chain", msg="is only taken with a crypto portal")


async def open_portal(
    call: Call, bank: Bank, pocket: tuple[UUID, UUID], name: str, rails: list[Rail] | None
) -> PortalRow:
    """Open a portal of (customer_id, pocket_id); `rails` narrow what it takes."""
    owner, pocket_id = pocket
    chosen = tuple(rail for rail in BANK_RAILS if rail in rails) if rails else None
    answer = await bank.engine.submit(
        OpenPortal(**call.command_fields(owner), pocket_id=pocket_id, name=name, payment_rails=chosen)
    )
    return await portal_store.get_portal(bank.pool, owner, UUID(answer.outcome["portal_id"]))


def beneficiary_of(customer: CustomerRow | None) -> Beneficiary:
    """Whom payments into a customer's portals are for."""
    if customer is None:
        return Beneficiary("", None)
    address = address_of(customer)
    return Beneficiary(customer.name, format_address(address) if address else None)


async def portal_page(
    bank: Bank, wanted: ListQuery, owner: UUID, pocket_id: UUID | None, types: list[str] | None
) -> CursorList[Portal]:
    """One page of portals of a pocket, or of all pockets of a customer, newest first."""
    scope, filters = f"portals:{owner}:{pocket_id}", {"types": types}
    page = await wanted.page(
        bank.pager,
        scope,
        filters,
        read=lambda part: portal_store.list_portals(
            bank.pool, owner, pocket_id, types=types, after=part.dated_place, backwards=part.backwards, limit=part.limit
        ),
        sort_key_of=lambda row: (row.created_at.isoformat(), str(row.portal_id)),
    )
    return page_of(page, [render_portal(row) for row in page.items])
