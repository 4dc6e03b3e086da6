"""Counterparties, v2. The APIs differ in the verifications that they offer."""

from typing import Any, Literal, Union
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.counterparties import requests, schemas, store
from billfold.accounts.counterparties.commands import ConfirmDeposits, UpdateCounterparty
from billfold.accounts.counterparties.names import NameMatch
from billfold.accounts.counterparties.requests import read_counterparty
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.notes.store import note_fields
from billfold.http.caller import Call
from billfold.http.operations import MAY_NEED_APPROVAL, MaybeInPath, get, patch, post, with_scope
from billfold.http.parameters import ListQuery
from billfold.http.responses import HttpResponse
from billfold.http.schemas import CursorList
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller, RequestApproval
from billfold.platform.errors import Refused

READS = with_scope("transfers.read", "counterparties")
WRITES = with_scope("transfers.write", "counterparties")
_ADD_REFUSES = ("customer-not-open", "name-checks-exhausted", "usage-limit-reached", "external-id-taken")
_UPDATE_REFUSES = ("counterparty-not-linked", "external-id-taken")
_DEPOSIT_REFUSES = (
    "micro-deposits-not-sent",
    "micro-deposits-not-pending",
    "micro-deposits-mismatch",
    "usage-limit-reached",
)
_PATH, _OWN_PATH = "/api/v2/customers/{customer_id}/counterparties/", "/api/v2/counterparties/"


class Verification(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The proof that the customer holds the account; documents by id."""

    type: Literal["supporting_documents", "incoming_wire"]
    document_ids: schemas.DocumentIds | None = None


class WireVerification(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The proof that the customer holds the account; `unverified` for none."""

    type: Literal["supporting_documents", "incoming_wire", "unverified"]
    document_ids: schemas.DocumentIds | None = None


class AccountVerification(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The proof that the customer holds the account."""

    type: Literal["supporting_documents", "incoming_wire", "micro_deposits"]
    document_ids: schemas.DocumentIds | None = None


def _create_requests(of_wires: type, of_accounts: type) -> Any:  # noqa: ANN401 - a type
    """Return the bodies that one API accepts: every form, with the verifications that it offers."""
    forms: list[tuple[str, type, tuple[Any, ...]]] = [
        ("Wire", schemas.WireForm, (of_wires,)),
        ("ACH", schemas.AchForm, (of_accounts,)),
        ("InternationalWire", schemas.InternationalForm, (of_wires,)),
        ("OnUs", schemas.OnUsForm, (of_accounts | None, None)),
        ("CryptoWalletAddress", schemas.WalletForm, (of_accounts | None, None)),
    ]
    bodies = [
        msgspec.defstruct(
            f"Create{name}CounterpartyRequest",
            [("verification", *verification)],
            bases=(form,),
            namespace={"__doc__": form.__doc__},
            kw_only=True,
        )
        for name, form, verification in forms
    ]
    return Union[tuple(bodies)]  # noqa: UP007 - of a list


CreateCounterparty = _create_requests(WireVerification, AccountVerification)
PartnerCreateCounterparty = _create_requests(Verification, Verification)


@post(_PATH, takes=PartnerCreateCounterparty, refuses=_ADD_REFUSES)
@post(_OWN_PATH, WRITES, takes=CreateCounterparty, documented=MAY_NEED_APPROVAL, refuses=_ADD_REFUSES)
async def create_counterparty(
    caller: Call, bank: Bank, customer_id: MaybeInPath, data: schemas.Form, request_approval: RequestApproval
) -> Counterparty | HttpResponse:
    """Create counterparty.

    It is PENDING until its account is verified. An account of this bank is LINKED at once if the name matches that of
    its owner or is close to it (`verification.name_match`); an `on_us` one with another name is UNLINKED, unless
    documents prove it.

    In the Customer API an approval rule of the team may require another member's approval first.
    """
    owner = await caller.owner(bank, customer_id)
    command = await requests.add_counterparty_command(caller, bank, owner, form=data)
    is_refuted = command.type == "on_us" and command.name_match == NameMatch.NO_MATCH and not command.document_ids
    if isinstance(caller, CustomerCaller) and not is_refuted:
        content, subject = requests.command_content(command), ("counterparty", None)
        pending = await request_approval(
            caller, bank, "NEW_COUNTERPARTY", "counterparty.create", subject, counterparty=content
        )
        if pending is not None:
            return pending
    return await read_counterparty(bank, owner, await requests.add_counterparty(bank, command))


@get(_PATH, as_of=True)
@get(_OWN_PATH, READS, as_of=True)
async def list_counterparties(
    *, caller: Call, bank: Bank, customer_id: MaybeInPath, wanted: ListQuery, query: requests.CounterpartyQuery
) -> CursorList[Counterparty]:
    """List counterparties.

    Newest first.
    """
    owner = await caller.owner(bank, customer_id)
    return await requests.counterparty_page(bank, owner, wanted, query=query, as_of=caller.as_of)


@get(_PATH + "{counterparty_id}/", as_of=True)
@get(_OWN_PATH + "{counterparty_id}/", READS, as_of=True)
async def get_counterparty(caller: Call, bank: Bank, customer_id: MaybeInPath, counterparty_id: UUID) -> Counterparty:
    """Get counterparty."""
    return await read_counterparty(bank, await caller.owner(bank, customer_id), counterparty_id, caller.as_of)


@patch(_PATH + "{counterparty_id}/", refuses=_UPDATE_REFUSES)
@patch(_OWN_PATH + "{counterparty_id}/", WRITES, refuses=_UPDATE_REFUSES)
async def update_counterparty(
    caller: Call, bank: Bank, customer_id: MaybeInPath, counterparty_id: UUID, data: requests.ChangeCounterparty
) -> Counterparty:
    """Update counterparty.

    Changes its display name, or unlinks it permanently.
    """
    owner = await caller.owner(bank, customer_id)
    rename = data.display_name is not UNSET
    await store.get_counterparty(bank.pool, owner, counterparty_id)
    await bank.engine.submit(
        UpdateCounterparty(
            **caller.command_fields(owner),
            **await note_fields(bank, owner, "counterparty", data, noted=counterparty_id),
            counterparty_id=counterparty_id,
            display_name=data.display_name if isinstance(data.display_name, str) else None,
            rename=rename,
            unlink=data.status is not None,
        )
    )
    return await read_counterparty(bank, owner, counterparty_id)


@post(_PATH + "{counterparty_id}/verify-micro-deposits/", status=200, refuses=_DEPOSIT_REFUSES)
@post(_OWN_PATH + "{counterparty_id}/verify-micro-deposits/", WRITES, status=200, refuses=_DEPOSIT_REFUSES)
async def verify_micro_deposits(
    caller: Call, bank: Bank, customer_id: MaybeInPath, counterparty_id: UUID, data: requests.Deposits
) -> Counterparty:
    """Verify micro-deposits.

    Send the amounts of the two deposits, in any order, once both have left the bank. After three wrong attempts the
    account cannot be verified for seven days, not even as another counterparty.
    """
    owner = await caller.owner(bank, customer_id)
    first, second = data.amounts
    command = ConfirmDeposits(**caller.command_fields(owner), counterparty_id=counterparty_id, amounts=(first, second))
    answer = await requests.confirm_deposits(bank, command)
    if not answer.outcome["confirmed"]:
        left = answer.outcome["left"]
        rest = "The counterparty is unlinked." if left == 0 else f"Tries left: {left}."
        raise Refused("micro-deposits-mismatch", f"These are not the deposits. {rest}", tries_left=left)
    return await read_counterparty(bank, owner, counterparty_id)
