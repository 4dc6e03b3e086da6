"""Operations on customers."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.addresses import Address, find_address_error
from billfold.accounts.customers import schemas, store
from billfold.accounts.customers.commands import CloseCustomer, UpdateCustomer
from billfold.accounts.notes.schemas import ChangedNote, NoteQuery
from billfold.accounts.notes.store import annotate, list_noted, show_notes
from billfold.accounts.profiles import open_profile, open_profiles, seal_profile
from billfold.http.caller import Call
from billfold.http.operations import MaybeInPath, get, patch, with_scope
from billfold.http.parameters import ListQuery, Query, page_of, parse_choice
from billfold.http.raw_request import texts_in
from billfold.http.schemas import CursorList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.ledger.customers import CustomerRow
from billfold.platform.errors import FieldError, InvalidInput, Refused

CLOSURE_FEATURE = "customer_closure"
_MERGES = 10
"""Maximum number of attempts to merge changes with a profile that changes concurrently."""


def _one_of(*known: str) -> Query:
    return Query(parse=partial(parse_choice, known), schema={"type": "string", "enum": list(known)})


class ChangeCustomer(ChangedNote, forbid_unknown_fields=True, kw_only=True):
    """A note, contact details to replace, or `status` CLOSED with a `closure_reason`; not both of the latter."""

    email: schemas.Email | None = None
    phone_number: schemas.Phone | None = None
    address: Address | None = None
    trusted_contact: schemas.TrustedContact | UnsetType | None = UNSET
    status: Literal["CLOSED"] | None = None
    closure_reason: schemas.ClosureReason | None = None
    closure_description: Annotated[str, msgspec.Meta(max_length=500)] | None = None


@get("/api/v1/customers/", refuses=("not-found",))
async def list_customers(
    *,
    caller: Caller,
    bank: Bank,
    wanted: ListQuery,
    account_status: Annotated[str | None, _one_of("PENDING", "OPEN", "FROZEN", "CLOSED")] = None,
    type_: Annotated[str | None, Query(name="type"), _one_of("INDIVIDUAL", "BUSINESS")] = None,
    name: Annotated[str | None, Query(description="How the name begins, in upper or lower case.")] = None,
    notes: NoteQuery,
    customer_id: Annotated[list[UUID] | None, Query(name="customer_id[]", description="Only these.")] = None,
) -> CursorList[schemas.Customer]:
    """List customers.

    Returns customers of the partner and its own account (`role`), newest first.
    """
    notes.require_alone(account_status, type_, name, customer_id)
    own = None if customer_id is None else [await caller.owner(bank, each) for each in dict.fromkeys(customer_id)]
    noted = await list_noted(bank, caller.own_customer_id, "customer", notes)
    among = noted if own is None or noted is None else [each for each in own if each in set(noted)]
    listed, values = store.listed_customers(
        caller.partner_id, account_status, type_, name=name, among=own if among is None else among
    )
    page = await wanted.read(bank, listed, *values, scope="customers")
    return page_of(page, await _show_all(caller, bank, await open_profiles(bank, page.items)))


@get("/api/v1/customers/{customer_id}/")
@get("/api/v1/customer/", with_scope("customer.read", "customer"), tag="customer")
async def get_customer(caller: Call, bank: Bank, customer_id: MaybeInPath) -> schemas.Customer:
    """Get customer.

    Returns the customer in the path, or the one the token is for.
    """
    return await show_customer(caller, bank, customer_id)


async def show_customer(caller: Call, bank: Bank, customer_id: UUID | None) -> schemas.Customer:
    """Return a customer for display, to its partner with the note that the partner has attached."""
    return (await _show_all(caller, bank, [await open_profile(bank, await caller.customer(bank, customer_id))]))[0]


async def _show_all(caller: Call, bank: Bank, rows: Sequence[CustomerRow]) -> list[schemas.Customer]:
    shown = [schemas.render_customer(row) for row in rows]
    if not isinstance(caller, Caller):
        return shown
    return await show_notes(bank, {(caller.own_customer_id, each.id): each for each in shown})


@patch(
    "/api/v1/customers/{customer_id}/",
    refuses=(
        "customer-not-open",
        "customer-has-balance",
        "pocket-frozen",
        "feature-not-enabled",
        "customer-changed",
        "external-id-taken",
    ),
)
async def update_customer(caller: Caller, bank: Bank, customer_id: UUID, data: ChangeCustomer) -> schemas.Customer:
    """Update customer.

    Replaces contact details and the note, or closes the account for good if every Pocket is empty and nothing is in
    process.
    """
    changes = _changes(data)
    reason = _parse_closure(data, changes)
    row = await caller.customer(bank, customer_id)
    for step in range(_MERGES if changes or reason else 0):
        row = await caller.customer(bank, customer_id)
        if reason is not None:
            await store.require_feature(bank.pool, row.customer_id, CLOSURE_FEATURE)
            changes = {"closure_description": data.closure_description} if data.closure_description else {}
        fields = caller.command_fields(row.customer_id, step=step) | {
            "profile": await _seal_profile(bank, row, changes) if changes else None,
            "replaces": row.profile,
            "references": (row.customer_id,),
        }
        command = UpdateCustomer(**fields) if reason is None else CloseCustomer(**fields, reason=reason)
        try:
            await bank.engine.submit(command)
            break
        except Refused as refusal:
            if refusal.code != "customer-changed" or step == _MERGES - 1:
                raise
    own = caller.own_customer_id
    await annotate(caller, bank, own, kind="customer", object_id=row.customer_id, given=data, step=_MERGES)
    return await show_customer(caller, bank, customer_id)


async def _seal_profile(bank: Bank, row: CustomerRow, changes: dict[str, Any]) -> str | None:
    """Return the customer's profile with these changes, sealed; null removes a field."""
    merged = {**msgspec.json.decode((await open_profile(bank, row)).profile), **changes}
    profile = {name: part for name, part in merged.items() if part is not None}
    return await seal_profile(bank, row.customer_id, profile)


def _changes(data: ChangeCustomer) -> dict[str, Any]:
    _check_addresses(data)
    given = {name: value for name in ("email", "phone_number", "address") if (value := getattr(data, name)) is not None}
    if data.trusted_contact is not UNSET:
        given["trusted_contact"] = data.trusted_contact
    built: dict[str, Any] = msgspec.to_builtins(given)
    wrong = [
        place
        for place, text in texts_in({**built, "closure_description": data.closure_description}, ())
        if not text.isprintable()
    ]
    if wrong:
        raise InvalidInput(
            [FieldError(("body", *place), "may have printable characters only", "value_error") for place in wrong]
        )
    for person in (built, built.get("trusted_contact")):
        if person and person.get("phone_number"):
            person["phone_number"] = schemas.to_e164(person["phone_number"])
    return built


def _check_addresses(data: ChangeCustomer) -> None:
    contact = data.trusted_contact
    contact_address = contact.address if isinstance(contact, schemas.TrustedContact) else None
    for address, place in ((data.address, ("address",)), (contact_address, ("trusted_contact", "address"))):
        if address is not None and (error := find_address_error(address)):
            field, reason = error
            raise InvalidInput.at("body", *place, field, msg=reason)


def _parse_closure(data: ChangeCustomer, changes: dict[str, Any]) -> schemas.ClosureReason | None:
    """Return the reason for closing the account, None if it is not closed."""
    if data.status is None:
        for name in ("closure_reason", "closure_description"):
            if getattr(data, name) is not None:
                raise InvalidInput.at("body", name, msg="is only taken with status CLOSED")
        return None
    if changes or (data.external_id, data.metadata) != (UNSET, UNSET):
        raise InvalidInput.at("body", "status", msg="closes the account and changes nothing else")
    if data.closure_reason is None:
        raise InvalidInput.at("body", "closure_reason", msg="is needed to close", kind="missing")
    return data.closure_reason
