"""Customers as far as their Pockets need them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.commands import CloseCustomer, UpdateCustomer
from billfold.accounts.customers import store as customer_store
from billfold.accounts.customers.profiles import open_profile, open_profiles, seal_profile
from billfold.accounts.customers.schemas import (
    Address,
    Customer,
    Email,
    Phone,
    TrustedContact,
    find_address_error,
    render_customer,
    to_e164,
)
from billfold.http.caller import Call, Caller
from billfold.http.list_params import ListQuery, page_of
from billfold.http.operations import MaybeInPath, get, patch, with_scope
from billfold.http.parameters import Query, parse_choice
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank
from billfold.platform.errors import InvalidInput, Refused

CLOSURE_FEATURE = "customer_closure"
ClosureReason = Literal["SUSPICIOUS_ACTIVITY", "USER_INSTIGATED", "PARTNER_INITIATED_CLOSURE", "INACTIVITY"]


def _one_of(*known: str) -> Query:
    return Query(parse=partial(parse_choice, known), schema={"type": "string", "enum": list(known)})


class ChangeCustomer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Contact details to replace, or `status` CLOSED with a `closure_reason`; never both."""

    email: Email | None = None
    phone_number: Phone | None = None
    address: Address | None = None
    trusted_contact: TrustedContact | UnsetType | None = UNSET
    status: Literal["CLOSED"] | None = None
    closure_reason: ClosureReason | None = None
    closure_description: Annotated[str, msgspec.Meta(max_length=500)] | None = None


@get("/api/v1/customers/")
async def list_customers(
    caller: Caller,
    bank: Bank,
    wanted: ListQuery,
    account_status: Annotated[str | None, _one_of("PENDING", "OPEN", "FROZEN", "CLOSED")] = None,
    type_: Annotated[str | None, Query(name="type"), _one_of("INDIVIDUAL", "BUSINESS")] = None,
) -> CursorList[Customer]:
    """List customers.

    Customers of the partner and its own account (`role`), newest first.
    """
    page = await wanted.read(
        bank, customer_store.CUSTOMERS, caller.partner_id, account_status, type_, scope="customers"
    )
    return page_of(page, [render_customer(row) for row in await open_profiles(bank, page.items)])


@get("/api/v1/customers/{customer_id}/")
@get("/api/v1/customer/", with_scope("customer.read", "customer"), tag="customer")
async def get_customer(caller: Call, bank: Bank, customer_id: MaybeInPath) -> Customer:
    """Get customer.

    The customer in the path, or the one the token is for.
    """
    return render_customer(await open_profile(bank, await caller.customer(bank, customer_id)))


@patch("/api/v1/customers/{customer_id}/", refuses=("customer-not-open", "customer-has-balance", "feature-not-enabled"))
async def update_customer(caller: Caller, bank: Bank, customer_id: UUID, data: ChangeCustomer) -> Customer:
    """Update customer.

    Replace contact details, or close the account when every Pocket is empty.
    """
    row = await caller.customer(bank, customer_id)
    fields = caller.command_fields(row.customer_id)
    changes = _changes(data)
    if data.status is not None:
        caller.require_feature(CLOSURE_FEATURE)
        if row.customer_id == caller.own_customer_id:
            raise Refused("forbidden", "Your own account is not closed like a customer's.")
        reason = _parse_closure(data, changes)
        await bank.engine.submit(CloseCustomer(**fields, reason=reason, references=(row.customer_id,)))
    elif changes:
        merged = {**msgspec.json.decode((await open_profile(bank, row)).profile), **changes}
        profile = {name: part for name, part in merged.items() if part is not None}
        sealed = await seal_profile(bank, row.customer_id, profile)
        await bank.engine.submit(UpdateCustomer(**fields, profile=sealed))
    else:
        raise InvalidInput.at("body", msg="names nothing to change")
    return render_customer(await open_profile(bank, await caller.customer(bank, row.customer_id)))


def _changes(data: ChangeCustomer) -> dict[str, Any]:
    _check_addresses(data)
    given = {name: value for name in ("email", "phone_number", "address") if (value := getattr(data, name)) is not None}
    if data.trusted_contact is not UNSET:
        given["trusted_contact"] = data.trusted_contact
    built: dict[str, Any] = msgspec.to_builtins(given)
    for person in (built, built.get("trusted_contact")):
        if person and person.get("phone_number"):
            person["phone_number"] = to_e164(person["phone_number"])
    return built


def _check_addresses(data: ChangeCustomer) -> None:
    contact = data.trusted_contact
    contact_address = contact.address if isinstance(contact, TrustedContact) else None
    for address, place in ((data.address, ("address",)), (contact_address, ("trusted_contact", "address"))):
        if address is not None and (error := find_address_error(address)):
            field, reason = error
            raise InvalidInput.at("body", *place, field, msg=reason)


def _parse_closure(data: ChangeCustomer, changes: dict[str, Any]) -> str:
    if changes:
        raise InvalidInput.at("body", "status", msg="closes the account and changes nothing else")
    if data.closure_reason is None:
        raise InvalidInput.at("body", "closure_reason", msg="is needed to close", kind="missing")
    return data.closure_reason
