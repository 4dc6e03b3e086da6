"""Counterparties, v2: the `on_us` kind."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import get, patch, post
from litestar.params import QueryParameter
from litestar.status_codes import HTTP_201_CREATED
from msgspec import UNSET, UnsetType

from billfold.domain import counterparties, portals
from billfold.domain.portals import PortalRow
from billfold.engine.bank import Bank
from billfold.flows.counterparties import AddOnUsCounterparty, UpdateCounterparty
from billfold.flows.portals import NETWORK_DIGITS
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.lists import ListQuery, list_query, page_of
from billfold.interfaces.http.marks import refuses
from billfold.interfaces.http.shapes.counterparty import (
    Counterparty,
    CounterpartyName,
    render_counterparty,
)
from billfold.interfaces.http.shapes.pages import CursorList
from billfold.interfaces.http.shapes.texts import NOT_BLANK
from billfold.kit.errors import InvalidInput, Refused

TYPES = frozenset({"ach", "wire", "on_us", "international_wire", "crypto_wallet_address"})
STATUSES = frozenset({"PENDING", "LINKED", "UNLINKED", "VERIFIED"})
DisplayName = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=NOT_BLANK)]


class Verification(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How it shall be shown that the account is theirs; an `on_us` one needs nothing."""

    type: Literal["supporting_documents", "incoming_wire"]
    document_ids: list[UUID] | None = None


class CreateCounterparty(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A counterparty; `type` chooses the variant. An `on_us` one is a 12-digit network address."""

    type: Literal["ach", "wire", "on_us", "international_wire", "crypto_wallet_address"]
    counterparty_name: CounterpartyName
    account_number: str | None = None
    display_name: DisplayName | None = None
    verification: Verification | None = None
    routing_number: str | None = None
    identifier: str | None = None
    identifier_code: str | None = None
    identifier_type: str | None = None
    account_type: str | None = None
    address: dict[str, Any] | None = None
    institution_name: str | None = None
    wire_instructions: str | None = None
    chain: str | None = None
    wallet_address: str | None = None
    asset: str | None = None


# Fields of the other variants, which this one refuses by name.
_FOREIGN_FIELDS = (
    "routing_number", "identifier", "identifier_code", "identifier_type", "account_type",
    "address", "institution_name", "wire_instructions", "chain", "wallet_address", "asset",
)  # fmt: skip


class ChangeCounterparty(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another display name (null removes it), or `status` UNLINKED for ever."""

    display_name: DisplayName | UnsetType | None = UNSET
    status: Literal["UNLINKED"] | None = None


@post(
    "/api/v2/customers/{customer_id:str}/counterparties/",
    status_code=HTTP_201_CREATED,
    operation_id="create_counterparty",
    opt=refuses("not-found", "customer-not-open", "rail-not-available"),
    tags=["counterparties"],
)
async def create_counterparty(
    caller: Caller, bank: Bank, customer_id: str, data: CreateCounterparty
) -> Counterparty:
    """Link a Pocket of this bank as payee, by its network address."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    target = await _target(bank, data)
    answer = await bank.engine.submit(
        AddOnUsCounterparty(
            **caller.command_fields(owner),
            counterparty_name=msgspec.to_builtins(data.counterparty_name),
            display_name=data.display_name,
            account_number=str(data.account_number),
            target_customer_id=target.customer_id,
            target_pocket_id=target.pocket_id,
        )
    )
    return await _read(bank, owner, UUID(answer.outcome["counterparty_id"]))


@get(
    "/api/v2/customers/{customer_id:str}/counterparties/",
    dependencies=list_query(),
    operation_id="list_counterparties",
    opt=refuses("not-found"),
    tags=["counterparties"],
)
async def list_counterparties(
    caller: Caller,
    bank: Bank,
    customer_id: str,
    wanted: ListQuery,
    status: Annotated[list[str] | None, QueryParameter(name="status")] = None,
    statuses: Annotated[list[str] | None, QueryParameter(name="status[]")] = None,
    type_: Annotated[list[str] | None, QueryParameter(name="type")] = None,
    types: Annotated[list[str] | None, QueryParameter(name="type[]")] = None,
) -> CursorList[Counterparty]:
    """List the counterparties of a customer, newest first."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    kinds = _among("type", [*(type_ or ()), *(types or ())], TYPES)
    states = _among("status", [*(status or ()), *(statuses or ())], STATUSES)
    scope, filters = f"counterparties:{owner}", {"types": kinds, "statuses": states}
    position = wanted.position(bank.pager, scope, filters)
    place = position.place if position else None
    rows = await counterparties.list_counterparties(
        bank.pool,
        owner,
        types=kinds,
        statuses=states,
        after=(datetime.fromisoformat(str(place[0])), UUID(str(place[1]))) if place else None,
        backwards=position is not None and position.direction == "prev",
        limit=wanted.limit + 1,
    )
    page = bank.pager.page(
        scope,
        filters,
        rows,
        limit=wanted.limit,
        came_from=position,
        place_of=lambda row: (row.created_at.isoformat(), str(row.counterparty_id)),
    )
    return page_of(page, [render_counterparty(row, bank.settings) for row in page.items])


@get(
    "/api/v2/customers/{customer_id:str}/counterparties/{counterparty_id:str}/",
    operation_id="get_counterparty",
    opt=refuses("not-found"),
    tags=["counterparties"],
)
async def get_counterparty(
    caller: Caller, bank: Bank, customer_id: str, counterparty_id: str
) -> Counterparty:
    """Read one counterparty."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await _read(bank, owner, ids_in.path_uuid("counterparty_id", counterparty_id))


@patch(
    "/api/v2/customers/{customer_id:str}/counterparties/{counterparty_id:str}/",
    operation_id="update_counterparty",
    opt=refuses("not-found", "counterparty-not-linked"),
    tags=["counterparties"],
)
async def update_counterparty(
    caller: Caller, bank: Bank, customer_id: str, counterparty_id: str, data: ChangeCounterparty
) -> Counterparty:
    """Give a counterparty another display name, or unlink it for ever."""
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    asked = ids_in.path_uuid("counterparty_id", counterparty_id)
    rename = data.display_name is not UNSET
    if not rename and data.status is None:
        raise InvalidInput.at("body", msg="names nothing to change")
    await bank.engine.submit(
        UpdateCounterparty(
            **caller.command_fields(owner),
            counterparty_id=asked,
            display_name=data.display_name if isinstance(data.display_name, str) else None,
            rename=rename,
            unlink=data.status is not None,
        )
    )
    return await _read(bank, owner, asked)


async def _target(bank: Bank, data: CreateCounterparty) -> PortalRow:
    """The portal behind a network address. Raises what is wrong with the request."""
    if data.type != "on_us":
        raise Refused(
            "rail-not-available", f"Counterparties of type {data.type} are not available yet."
        )
    for name in _FOREIGN_FIELDS:
        if getattr(data, name) is not None:
            raise InvalidInput.at(
                "body", name, msg="is not taken with type on_us", kind="extra_forbidden"
            )
    number = data.account_number
    if number is None:
        raise InvalidInput.at("body", "account_number", msg="is required", kind="missing")
    entry = await bank.directory.find("network", number) if _is_address(number) else None
    found = None
    if entry is not None:
        found = await portals.get_portal(bank.pool, entry.customer_id, entry.object_id)
    if found is None or found.status != "OPEN":
        raise InvalidInput.at(
            "body", "account_number", msg="is not the network address of an open portal"
        )
    return found


def _is_address(number: str) -> bool:
    return len(number) == NETWORK_DIGITS and number.isascii() and number.isdigit()


async def _read(bank: Bank, owner: UUID, counterparty_id: UUID) -> Counterparty:
    row = await counterparties.get_counterparty(bank.pool, owner, counterparty_id)
    return render_counterparty(row, bank.settings)


def _among(name: str, asked: list[str], known: frozenset[str]) -> list[str] | None:
    if not known.issuperset(asked):
        raise InvalidInput.at("query", name, msg=f"must be among {', '.join(sorted(known))}")
    return asked or None


ROUTES = [create_counterparty, list_counterparties, get_counterparty, update_counterparty]
