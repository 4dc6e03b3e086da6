"""Requests that add, change and verify counterparties, within limits of use."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.accounts.addresses import address_of, format_address
from billfold.accounts.counterparties import ports, schemas, store
from billfold.accounts.counterparties.commands import AddCounterparty, ConfirmDeposits, ExpireVerification
from billfold.accounts.counterparties.rules import identifiers, manage, verification_kinds
from billfold.accounts.counterparties.store import document_ids_of, open_counterparties, open_details, seal_details
from billfold.accounts.counterparties.types import CounterpartyRow, CounterpartyStatus
from billfold.accounts.notes.schemas import ChangedNote, NoteQuery
from billfold.accounts.notes.store import find_noted, note_fields, show_notes, terms_of
from billfold.accounts.portals import store as portal_store
from billfold.accounts.portals.commands import PortalRow
from billfold.accounts.portals.rules import NETWORK_DIGITS
from billfold.accounts.profiles import open_profile
from billfold.data_keys.keys import DataKeys, PartyField
from billfold.documents import store as document_store
from billfold.documents.ports import DocumentRow
from billfold.documents.rules import PROOF_OF_ACCOUNT
from billfold.http.caller import Call
from billfold.http.parameters import ListQuery, page_of, texts_among
from billfold.http.schemas import CursorList
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank, limit_usage, uses_of
from billfold.ledger.commands import Command
from billfold.ledger.customers import CustomerRow
from billfold.ledger.directory import find_customer
from billfold.ledger.engine.pending_command import Answer
from billfold.ledger.types import ScheduledJob
from billfold.platform.clock import wall_now
from billfold.platform.database.paging import Page, list_as_of
from billfold.platform.database.usage_counts import forget_usage, hashed_subject, require_unused
from billfold.platform.errors import FieldError, InvalidInput, Refused, Unavailable

_TRIES = "verification_tries"
_TRIES_OF_ACCOUNT = f"{_TRIES}.account"


async def limit_new_counterparty(bank: Bank, command: AddCounterparty) -> None:
    """Count a counterparty before it is added, and its deposits. Raises Refused `usage-limit-reached`."""
    owner = command.customers[0]
    if command.verification == "micro_deposits":
        account = await _account_key(bank, owner, command.details)
        await require_unused(bank.pool, bank.settings.limits, _TRIES_OF_ACCOUNT, account, wall_now())
        await limit_usage(bank, "micro_deposits", owner, account=account)
    await limit_usage(bank, "counterparties", owner)


async def uses_of_counterparties(bank: Bank, commands: Sequence[AddCounterparty]) -> dict[tuple[str, UUID], int]:
    """Return what counterparties of one customer use up, if they are added all or none.

    Raises Refused `usage-limit-reached`, and `name-checks-exhausted` if more names at this bank could be wrong than may
    be: what is not added counts for nothing, so that its refusal must not depend on a name, nor on whose account it is.
    """
    owner, own_bank = commands[0].customers[0], bank.settings.bank_routing_number
    names = sum(each.type == "on_us" or each.details.get("routing_number") == own_bank for each in commands)
    failed = await store.count_failed_names(bank.pool, owner, (await bank.now()).date()) if names else 0
    if names and failed + names > verification_kinds.NAME_CHECKS_MAX:
        left = max(0, verification_kinds.NAME_CHECKS_MAX - failed)
        detail = f"{names} rows are of accounts at this bank, whose owners' names are checked"
        raise Refused("name-checks-exhausted", f"{detail}; today {left} such rows may be added all or none.")
    entry = await bank.directory.find("customer", owner)
    partner_id = None if entry is None else entry.partner_id
    uses = Counter(uses_of("counterparties", customer=owner, partner=partner_id, more=len(commands)))
    for command in commands:
        if command.verification == "micro_deposits":
            account = await _account_key(bank, owner, command.details)
            await require_unused(bank.pool, bank.settings.limits, _TRIES_OF_ACCOUNT, account, wall_now())
            uses.update(uses_of("micro_deposits", customer=owner, partner=partner_id, account=account))
    return dict(uses)


async def confirm_deposits(bank: Bank, command: ConfirmDeposits) -> Answer:
    """Name the amounts of two deposits that have left the bank; a wrong pair counts for the account.

    The attempt is counted before it is decided, so that concurrent attempts cannot exceed the limit. Raises NotFound,
    Refused `micro-deposits-not-pending`, `micro-deposits-not-sent`, `usage-limit-reached`.
    """
    owner, counterparty_id = command.customers[0], command.counterparty_id
    row = await store.get_counterparty(bank.pool, owner, counterparty_id)
    are_sent = await store.are_deposits_sent(bank.pool, bank.own_id, counterparty_id)
    command = msgspec.structs.replace(command, are_sent=are_sent)
    if not are_sent or row.status != CounterpartyStatus.PENDING:
        return await bank.engine.submit(command)
    account = await _account_key(bank, owner, msgspec.json.decode(row.details))
    await limit_usage(bank, _TRIES, owner, account=account)
    answer = await bank.engine.submit(command)
    if answer.outcome["confirmed"]:
        await forget_usage(bank.pool, _TRIES_OF_ACCOUNT, account)
    return answer


async def _account_key(bank: Bank, owner: UUID, details: Mapping[str, Any]) -> UUID:
    """Return a key of an account that is the same for all customers: its number is sealed for each customer."""
    opened = open_details(await bank.ports[DataKeys].of(bank.pool, owner), details)
    account = verification_kinds.account_of(opened)
    assert account is not None
    return hashed_subject(bank.vault, f"{account.bank}:{account.number.lstrip('0')}", "account")


TYPES = frozenset({"ach", "wire", "on_us", "international_wire", "crypto_wallet_address"})
STATUSES = frozenset({"PENDING", "LINKED", "UNLINKED", "VERIFIED"})


class CounterpartyQuery(NoteQuery, frozen=True, kw_only=True):
    """Filter of counterparties."""

    statuses: Annotated[list[str] | None, texts_among("status", STATUSES)] = None
    types: Annotated[list[str] | None, texts_among("type", TYPES)] = None


Cents = Annotated[int, msgspec.Meta(ge=1, le=99_999)]


_FROM_ACCOUNTS = frozenset({"incoming_wire", "micro_deposits"})
"""Verifications by money from an account at another bank: Pockets and wallets cannot send it."""


class ChangeCounterparty(ChangedNote, forbid_unknown_fields=True, kw_only=True):
    """Another display name (null removes it), or `status` UNLINKED permanently."""

    display_name: schemas.DisplayName | UnsetType | None = UNSET
    status: Literal["UNLINKED"] | None = None


class Deposits(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The two amounts in cents that arrived at the account, in any order."""

    amounts: Annotated[list[Cents], msgspec.Meta(min_length=2, max_length=2)]


async def add_counterparty_command(call: Call, bank: Bank, owner: UUID, form: schemas.Form) -> AddCounterparty:
    """Return the command that links the account of a checked form. Raises InvalidInput."""
    verification = getattr(form, "verification", None)
    kind, details = str(form.__struct_config__.tag), details_of(form)
    target = await _find_target(bank, form) if isinstance(form, schemas.OnUsForm) else None
    if (
        isinstance(form, schemas.OnUsForm | schemas.WalletForm)
        and verification is not None
        and verification.type in _FROM_ACCOUNTS
    ):
        reason = f"{verification.type} does not prove a {kind}: send supporting_documents, or no verification"
        raise InvalidInput([FieldError(("body", "verification", "type"), reason, "value_error")])
    if verification is not None and verification.document_ids:
        await _check_documents(bank, owner, verification.document_ids)
    if isinstance(form, schemas.WalletForm):
        await _check_wallet(bank, form)
    holder = await _find_holder(bank, details, target)
    address = None if holder is None else address_of(holder)
    data_key = await bank.ports[DataKeys].of(bank.pool, owner)
    return AddCounterparty(
        **call.command_fields(owner),
        **await note_fields(bank, owner, "counterparty", form),
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

    It cannot be paid before it is screened: the job of the same commit does it if this process ends before.
    Raises Refused, with `usage-limit-reached` checked first.
    """
    await limit_new_counterparty(bank, command)
    answer = await bank.engine.submit(command)
    counterparty_id = UUID(answer.outcome["counterparty_id"])
    job = ScheduledJob(manage.SCREENING_DUE, counterparty_id, command.customers[0], at=await bank.now())
    await scheduler.run_job(bank, job)
    await scheduler.cancel(bank.pool, manage.SCREENING_DUE, counterparty_id)
    return counterparty_id


def command_content(order: Command) -> dict[str, Any]:
    """Return the content to link, or to open, ready for JSON, without the caller."""
    own = set(order.__struct_fields__) - set(Command.__struct_fields__)
    fields: dict[str, Any] = msgspec.to_builtins({name: getattr(order, name) for name in own})
    return fields if order.attached is None else {**fields, "attached": msgspec.to_builtins(order.attached)}


async def counterparty_page(
    bank: Bank, owner: UUID, wanted: ListQuery, query: CounterpartyQuery, as_of: datetime | None = None
) -> CursorList[schemas.Counterparty]:
    """Return one page of a customer's counterparties, newest first; filters in both spellings."""
    if (external_id := query.require_alone(query.types, query.statuses)) is not None:
        get = partial(store.get_counterparty, bank.pool, owner, as_of=as_of)
        found = await find_noted(bank, owner, "counterparty", external_id, get=get)
        return page_of(Page(found), await render_counterparties(bank, owner, found))
    values = (query.types, query.statuses, await terms_of(bank, owner, "counterparty", query))
    listed, then = list_as_of(store.COUNTERPARTIES, store.COUNTERPARTIES_THEN, as_of)
    page = await wanted.read(bank, listed, owner, *values, *then, scope="counterparties")
    return page_of(page, await render_counterparties(bank, owner, page.items))


async def read_counterparty(
    bank: Bank, owner: UUID, counterparty_id: UUID, as_of: datetime | None = None
) -> schemas.Counterparty:
    """Return a customer's counterparty, as it is or was. Raises NotFound."""
    row = await store.get_counterparty(bank.pool, owner, counterparty_id, as_of=as_of)
    return (await render_counterparties(bank, owner, [row]))[0]


async def render_counterparties(bank: Bank, owner: UUID, rows: Sequence[CounterpartyRow]) -> list[schemas.Counterparty]:
    """Return counterparties with the current documents of their verifications."""
    rows = await open_counterparties(bank, rows)
    named = {row.counterparty_id: document_ids_of(row) for row in rows}
    ids = {each for own in named.values() for each in own}
    found = await document_store.list_documents(bank.pool, owner, ids) if ids else {}
    shown = [
        schemas.render_counterparty(
            row,
            bank.settings,
            [
                schemas.SupportingDocument(document_id=each, type=found[each].type, status=found[each].status)
                for each in named[row.counterparty_id]
                if each in found
            ],
        )
        for row in rows
    ]
    return await show_notes(bank, {(owner, each.id): each for each in shown})


async def expire_verification(bank: Bank, job: ScheduledJob) -> None:
    """Run the job that ends a verification by incoming wire if none has arrived."""
    assert job.customer_id is not None
    await bank.engine.submit(
        ExpireVerification(
            caller="agenda", key=job.object_id, customers=(job.customer_id,), counterparty_id=job.object_id
        )
    )


async def _check_documents(bank: Bank, owner: UUID, document_ids: Sequence[UUID]) -> None:
    """Raise InvalidInput at each id that is not a proof of account of this customer."""
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


def details_of(form: schemas.Form) -> dict[str, Any]:
    """Return the fields of a variant as stored: one layout, normalized, without nulls."""
    fields = msgspec.to_builtins(form)
    for name in ("type", "counterparty_name", "display_name", "verification", "external_id", "metadata"):
        fields.pop(name, None)
    if isinstance(form, schemas.InternationalForm):
        if form.account_number is not None:  # swapped
            fields["routing_number"], fields["identifier"] = form.identifier, form.account_number
            fields["account_number"] = None
        fields["routing_number"] = fields["routing_number"].upper()
        if form.identifier_type is None:
            iban = identifiers.has_iban_form(fields["identifier"])
            fields["identifier_type"] = "IBAN" if iban else "ACCOUNT_NUMBER"
    elif isinstance(form, schemas.WireForm):
        iban = identifiers.has_iban_form(form.identifier)
        fields["identifier_type"] = "IBAN" if iban else "ACCOUNT_NUMBER"
    if fields.get("identifier_type") == "IBAN":
        fields["identifier"] = identifiers.compact(fields["identifier"])
    return {name: value for name, value in fields.items() if value is not None}


async def _check_wallet(bank: Bank, form: schemas.WalletForm) -> None:
    """Raise InvalidInput for an address that can never be paid, regardless of its verification."""
    address = form.wallet_address
    wallets = bank.ports[ports.OwnWallets]
    if wallets.is_token(address):
        raise InvalidInput.at("body", "wallet_address", msg="is the contract of a token: what is sent there is lost")
    if await bank.directory.find("wallet", address.lower()) is not None:
        raise InvalidInput.at("body", "wallet_address", msg="is one of this bank: add its network address as on_us")
    with suppress(Unavailable):  # a payment to it is refused in any case
        if await wallets.pays_from(address):
            raise InvalidInput.at("body", "wallet_address", msg="is the wallet that this bank pays from")


async def _find_target(bank: Bank, form: schemas.OnUsForm) -> PortalRow:
    """Return the open portal of a network address. Raises InvalidInput."""
    number = form.account_number
    found = await _find_portal(bank, "network", number) if _is_network_address(number) else None
    if found is None or found.status != "OPEN":
        raise InvalidInput.at("body", "account_number", msg="is not the network address of an open portal")
    return found


async def _find_holder(bank: Bank, details: dict[str, Any], target: PortalRow | None) -> CustomerRow | None:
    """Return the owner of the account, with its profile decrypted, if it is at this bank."""
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
