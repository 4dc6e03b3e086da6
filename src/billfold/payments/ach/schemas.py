"""ACH originations as the Partner API accepts and returns them."""

from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET

from billfold.accounts.holds.schemas import Named
from billfold.accounts.notes.schemas import NewNote
from billfold.accounts.notes.types import ShownNote
from billfold.http.schemas import Amount, usd
from billfold.ledger.types import Direction
from billfold.payments.ach.commands import AMOUNT_MAX_CENTS, LINE_WIDTH, AchEntry, AchStatus
from billfold.platform.calendars import Calendars
from billfold.platform.errors import InvalidInput

ADDENDA_MAX = 1
"""CCD, PPD and WEB entries carry at most one line of payment-related information."""

Line = Annotated[str, msgspec.Meta(min_length=1, max_length=LINE_WIDTH, pattern=r"^[ -~]+\Z")]
Description = Annotated[str, msgspec.Meta(pattern=r"^[ a-zA-Z0-9]{1,10}\Z")]
_DEFAULTS: dict[str, str] = {Direction.DEBIT: "Funding TX", Direction.CREDIT: "Release TX"}


_RESERVED_DESCRIPTIONS = frozenset({"REVERSAL", "RETRY PYMT", "ACCTVERIFY"})
"""Entry descriptions that Nacha reserves; only the bank uses them."""
_REQUIRED_DIRECTIONS = {"PAYROLL": Direction.CREDIT, "PURCHASE": Direction.DEBIT}


def _description_error(text: str, direction: str) -> str | None:
    """Return why this entry description is not allowed (Nacha Operating Rules, section 2.5)."""
    if not text:
        return "is blank"
    if text in _RESERVED_DESCRIPTIONS:
        return f"{text} is reserved for entries of the bank"
    if _REQUIRED_DIRECTIONS.get(text, direction) != direction:
        return f"{text} is the name of a {_REQUIRED_DIRECTIONS[text]}"
    return None


class CreateAch(NewNote, forbid_unknown_fields=True, kw_only=True):
    """A payment to a counterparty (CREDIT), or a collection from it (DEBIT)."""

    counterparty_id: UUID
    direction: Literal["CREDIT", "DEBIT"]
    amount_usdc: Annotated[int, msgspec.Meta(ge=1, le=AMOUNT_MAX_CENTS)]
    sec_code: Literal["CCD", "PPD", "WEB"] = "WEB"
    payment_related_information: Annotated[list[Line], msgspec.Meta(max_length=ADDENDA_MAX)] = []  # noqa: RUF012 - a struct
    company_entry_description: Description | None = None
    hold_id: Named = UNSET

    @property
    def description(self) -> str:
        """The description shown to the receiver. Raises InvalidInput if it is required or not allowed."""
        text = self.company_entry_description
        if text is None and self.sec_code == "CCD":
            raise InvalidInput.at("body", "company_entry_description", msg="is required for CCD", kind="missing")
        error = None if text is None else _description_error(text.strip().upper(), self.direction)
        if error is not None:
            raise InvalidInput.at("body", "company_entry_description", msg=error)
        return text or _DEFAULTS[self.direction]


class AchOrigination(ShownNote, kw_only=True):
    """An entry that a customer originated. `return_code` is set if it was returned."""

    id: UUID
    customer_id: UUID
    service_account_id: UUID
    counterparty_id: UUID
    direction: Literal["CREDIT", "DEBIT"]
    sec_code: Literal["CCD", "PPD", "WEB"]
    status: Literal["PENDING", "APPROVED", "IN_TRANSIT", "PROCESSED", "REJECTED", "FAILED", "CANCELLED"]
    amount: Amount
    company_entry_description: str
    payment_related_information: list[str]
    effective_date: date | None
    trace_number: str | None
    return_code: str | None
    reason: str | None
    time_created: datetime
    updated_at: datetime
    object_type: Literal["ACHResponse"] = "ACHResponse"


class ReceivedAchDebit(msgspec.Struct, kw_only=True):
    """A debit that another bank has collected from a Pocket.

    `returnable_until` has each code with which its receiver can still have it returned, and until when.
    """

    id: UUID
    customer_id: UUID
    pocket_id: UUID
    portal_id: UUID | None
    sec_code: str
    status: Literal["PROCESSED", "REJECTED", "FAILED"]
    amount: Amount
    company_name: str
    company_entry_description: str
    trace_number: str | None
    return_code: str | None
    reason: str | None
    returnable_until: dict[str, datetime]
    time_created: datetime
    updated_at: datetime


class ReturnAchDebit(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The reason of a return: R05, R10 not authorized; R07 revoked; R08 stopped; R11 other terms; R29 corporate.

    For all but R08 and R29 the receiver has signed a written statement of unauthorized debit.
    """

    code: Literal["R05", "R07", "R08", "R10", "R11", "R29"]
    has_signed_statement: bool = False


def render_origination(entry: AchEntry, calendars: Calendars) -> AchOrigination:
    """Return an origination for display; if its day has been declared closed, with the next open day."""
    effective_on = entry.effective_on
    if effective_on is not None and entry.file_id is None and entry.status == AchStatus.APPROVED:
        effective_on = calendars.fed_on_or_after(effective_on)
    fields = {name: getattr(entry, name) for name in _SHARED_FIELDS} | {
        "id": entry.ach_id,
        "service_account_id": entry.pocket_id,
        "amount": usd(entry.amount),
        "company_entry_description": entry.description,
        "payment_related_information": entry.lines,
        "effective_date": effective_on,
        "time_created": entry.created_at,
    }
    return msgspec.convert(fields, AchOrigination)


def render_debit(entry: AchEntry, deadlines: dict[str, datetime]) -> ReceivedAchDebit:
    """Return a received debit for display, with the deadlines of its codes."""
    fields = {name: getattr(entry, name, None) for name in ReceivedAchDebit.__struct_fields__} | {
        "id": entry.ach_id,
        "amount": usd(entry.amount),
        "company_entry_description": entry.description,
        "returnable_until": deadlines,
        "time_created": entry.created_at,
    }
    return msgspec.convert(fields, ReceivedAchDebit)


_SHARED_FIELDS = frozenset(AchOrigination.__struct_fields__) & frozenset(AchEntry.__struct_fields__)
