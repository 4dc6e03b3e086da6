"""Counterparties are created, listed and changed in the same words by both APIs."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.addresses import address_of, format_address
from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.commands import AddCounterparty, ExpireVerification
from billfold.accounts.counterparties.ports import OwnWallets
from billfold.accounts.counterparties.rules import identifiers, verification_kinds
from billfold.accounts.counterparties.rules.manage import SCREENING_DUE
from billfold.accounts.counterparties.schemas import (
    Counterparty,
    DisplayName,
    Form,
    InternationalForm,
    OnUsForm,
    SupportingDocument,
    WalletForm,
    WireForm,
    render_counterparty,
)
from billfold.accounts.counterparties.sealed_details import open_counterparties, seal_details
from billfold.accounts.counterparties.store import document_ids_of
from billfold.accounts.counterparties.types import CounterpartyRow
from billfold.accounts.counterparties.usage import limit_new_counterparty
from billfold.accounts.portals import store as portal_store
from billfold.accounts.portals.rules import NETWORK_DIGITS
from billfold.accounts.portals.types import PortalRow
from billfold.accounts.profiles import open_profile
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.types import PartyField
from billfold.documents import store as document_store
from billfold.documents.rules import PROOF_OF_ACCOUNT
from billfold.documents.types import DocumentRow
from billfold.http.caller import Call
from billfold.http.parameters import ListQuery, page_of, texts_among
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank
from billfold.ledger.commands import Command
from billfold.ledger.directory.store import find_customer
from billfold.ledger.directory.types import CustomerRow
from billfold.ledger.jobs import store as jobs_store
from billfold.ledger.jobs.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.platform.errors import FieldError, InvalidInput, Unavailable

TYPES = frozenset({"ach", "wire", "on_us", "international_wire", "crypto_wallet_address"})
STATUSES = frozenset({"PENDING", "LINKED", "UNLINKED", "VERIFIED"})


class CounterpartyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which counterparties."""

    statuses: Annotated[list[str] | None, texts_among("status", STATUSES)] = None
    types: Annotated[list[str] | None, texts_among("type", TYPES)] = None


Cents = Annotated[int, msgspec.Meta(ge=1, le=99_999)]


_FROM_ACCOUNTS = frozenset({"incoming_wire", "micro_deposits"})
"""Verifications by money from an account of another bank: neither a Pocket nor a wallet sends it."""


class ChangeCounterparty(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Another display name (null removes it), or `status` UNLINKED for ever."""

    display_name: DisplayName | UnsetType | None = UNSET
    status: Literal["UNLINKED"] | None = None


class Deposits(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The two amounts in cents that arrived at the account, in any order."""

    amounts: Annotated[list[Cents], msgspec.Meta(min_length=2, max_length=2)]


async def add_counterparty_command(call: Call, bank: Bank, owner: UUID, form: Form) -> AddCounterparty:
    """Return the command that links the account of a checked form. Raises InvalidInput."""
    verification = getattr(form, "verification", None)
    kind, details = str(form.__struct_config__.tag), details_of(form)
    target = await _find_target(bank, form) if isinstance(form, OnUsForm) else None
    if isinstance(form, OnUsForm | WalletForm) and verification is not None and verification.type in _FROM_ACCOUNTS:
        reason = f"{verification.type} proves no {kind}: send supporting_documents, or no verification"
        raise InvalidInput([FieldError(("body", "verification", "type"), reason, "value_error")])
    if verification is not None and verification.document_ids:
        await _check_documents(bank, owner, verification.document_ids)
    if isinstance(form, WalletForm):
        await _check_wallet(bank, form)
    holder = await _find_holder(bank, details, target)
    address = None if holder is None else address_of(holder)
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    return AddCounterparty(
        **call.command_fields(owner),
        type=kind,
        counterparty_name=msgspec.to_builtins(form.counterparty_name),
        display_name=form.display_name,
        details=seal_details(data_key, kind, details),
        verification=None if verification is None else verification.type,
        document_ids=() if verification is None else tuple(verification.document_ids or ()),
        holder=None if holder is None else holder.name,
        holder_address=None if address is None else PartyField.ADDRESS.seal(data_key, format_address(address)),
        target_customer_id=None if target is None else target.customer_id,
        target_pocket_id=None if target is None else target.pocket_id,
    )


async def add_counterparty(bank: Bank, command: AddCounterparty) -> UUID:
    """Link an account and screen its names at once; return the counterparty's id.

    Until they are screened it is not paid: the job of the same commit does it when this process ends before.
    Raises Refused, `usage-limit-reached` before all else.
    """
    await limit_new_counterparty(bank, command)
    answer = await bank.engine.submit(command)
    counterparty_id = UUID(answer.outcome["counterparty_id"])
    job = ScheduledJob(SCREENING_DUE, counterparty_id, command.customers[0], at=await bank.now())
    await run_job(bank, job)
    await jobs_store.cancel(bank.pool, SCREENING_DUE, counterparty_id)
    return counterparty_id


def command_content(order: AddCounterparty) -> dict[str, Any]:
    """Return what is to be linked, ready for JSON, without who gives the command."""
    own = set(AddCounterparty.__struct_fields__) - set(Command.__struct_fields__)
    fields: dict[str, Any] = msgspec.to_builtins({name: getattr(order, name) for name in own})
    return fields


async def counterparty_page(
    bank: Bank, owner: UUID, wanted: ListQuery, query: CounterpartyQuery
) -> CursorList[Counterparty]:
    """One page of a customer's counterparties, newest first; filters in both spellings."""
    page = await wanted.read(
        bank, counterparty_store.COUNTERPARTIES, owner, query.types, query.statuses, scope="counterparties"
    )
    return page_of(page, await render_counterparties(bank, owner, page.items))


async def read_counterparty(bank: Bank, owner: UUID, counterparty_id: UUID) -> Counterparty:
    """Return a counterparty of a customer as it is now. Raises NotFound."""
    row = await counterparty_store.get_counterparty(bank.pool, owner, counterparty_id)
    return (await render_counterparties(bank, owner, [row]))[0]


async def render_counterparties(bank: Bank, owner: UUID, rows: Sequence[CounterpartyRow]) -> list[Counterparty]:
    """Return counterparties with the documents of their verifications, as they stand now."""
    rows = await open_counterparties(bank, rows)
    named = {row.counterparty_id: document_ids_of(row) for row in rows}
    ids = {each for own in named.values() for each in own}
    found = await document_store.list_documents(bank.pool, owner, ids) if ids else {}
    return [
        render_counterparty(
            row,
            bank.settings,
            [
                SupportingDocument(document_id=each, type=found[each].type, status=found[each].status)
                for each in named[row.counterparty_id]
                if each in found
            ],
        )
        for row in rows
    ]


async def expire_verification(bank: Bank, job: ScheduledJob) -> None:
    """Run the job that ends a verification by incoming wire when none has arrived."""
    assert job.customer_id is not None
    await bank.engine.submit(
        ExpireVerification(
            caller="agenda", key=job.object_id, customers=(job.customer_id,), counterparty_id=job.object_id
        )
    )


async def _check_documents(bank: Bank, owner: UUID, document_ids: Sequence[UUID]) -> None:
    """Raise InvalidInput at each id that is no proof of an account of this customer."""
    found = await document_store.list_documents(bank.pool, owner, document_ids)
    wrong = [
        FieldError(("body", "verification", "document_ids", place), _document_error(found.get(each)), "value_error")
        for place, each in enumerate(document_ids)
        if each not in found or found[each].type != PROOF_OF_ACCOUNT
    ]
    if wrong:
        raise InvalidInput(wrong)


def _document_error(found: DocumentRow | None) -> str:
    if found is None:
        return "is not a document of the customer"
    return f"must be of type {PROOF_OF_ACCOUNT}, not {found.type}"


def details_of(form: Form) -> dict[str, Any]:
    """Return the fields of a variant as they are kept: one layout, machine spelling, no nulls."""
    fields = msgspec.to_builtins(form)
    for name in ("type", "counterparty_name", "display_name", "verification"):
        fields.pop(name, None)
    if isinstance(form, InternationalForm):
        if form.account_number is not None:  # swapped
            fields["routing_number"], fields["identifier"] = form.identifier, form.account_number
            fields["account_number"] = None
        fields["routing_number"] = fields["routing_number"].upper()
        if form.identifier_type is None:
            iban = identifiers.has_iban_form(fields["identifier"])
            fields["identifier_type"] = "IBAN" if iban else "ACCOUNT_NUMBER"
    elif isinstance(form, WireForm):
        iban = identifiers.has_iban_form(form.identifier)
        fields["identifier_type"] = "IBAN" if iban else "ACCOUNT_NUMBER"
    if fields.get("identifier_type") == "IBAN":
        fields["identifier"] = identifiers.compact(fields["identifier"])
    return {name: value for name, value in fields.items() if value is not None}


async def _check_wallet(bank: Bank, form: WalletForm) -> None:
    """Raise InvalidInput for an address that is never paid, whatever becomes of its verification."""
    address = form.wallet_address
    wallets = bank.ports[OwnWallets]
    if wallets.is_token(address):
        raise InvalidInput.at("body", "wallet_address", msg="is the contract of a token: what is sent there is lost")
    if await bank.directory.find("wallet", address.lower()) is not None:
        raise InvalidInput.at("body", "wallet_address", msg="is one of this bank: add its network address as on_us")
    with suppress(Unavailable):  # a payment to it is refused in any case
        if await wallets.pays_from(address):
            raise InvalidInput.at("body", "wallet_address", msg="is the wallet that this bank pays from")


async def _find_target(bank: Bank, form: OnUsForm) -> PortalRow:
    """The open portal behind a network address. Raises InvalidInput."""
    number = form.account_number
    found = await _find_portal(bank, "network", number) if _is_network_address(number) else None
    if found is None or found.status != "OPEN":
        raise InvalidInput.at("body", "account_number", msg="is not the network address of an open portal")
    return found


async def _find_holder(bank: Bank, details: dict[str, Any], target: PortalRow | None) -> CustomerRow | None:
    """The owner of the account, with its profile opened, where it is one of this bank."""
    account = verification_kinds.account_of(details)
    if target is None and account is not None and account.bank == bank.settings.bank_routing_number:
        target = await _find_portal(bank, "account", f"{account.bank}:{account.number}")
    if target is None or target.status != "OPEN":
        return None
    found = await find_customer(bank.pool, target.customer_id)
    return found and await open_profile(bank, found)


async def _find_portal(bank: Bank, kind: str, value: str) -> PortalRow | None:
    entry = await bank.directory.find(kind, value)
    if entry is None:
        return None
    return await portal_store.get_portal(bank.pool, entry.customer_id, entry.object_id)


def _is_network_address(number: str) -> bool:
    return len(number) == NETWORK_DIGITS and number.isascii() and number.isdigit()
