"""Balances and entries of an account in a period.

A Pocket has two accounts. Its bank account is empty at the end of every day: with each payment comes the sweep
that moved it. Its brokerage account is worth what the Pocket holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import msgspec

from billfold.accounts.transactions.settlement import SettledDocument, TransactionRow


class AccountType(StrEnum):
    """The two accounts of a Pocket."""

    BANK = "BANK"
    BROKERAGE = "BROKERAGE"


class EntryKind(StrEnum):
    """The kind of an entry: on the bank account a payment or a sweep; on the brokerage account one of the last four."""

    ACH = "ACH"
    CARD = "CARD"
    CREDIT = "CREDIT"
    CRYPTO = "CRYPTO"
    FEE = "FEE"
    GENERIC = "GENERIC"
    ONUS = "ONUS"
    WIRE = "WIRE"
    SWEEP = "SWEEP"
    ADDITION = "ADDITION"
    SUBTRACTION = "SUBTRACTION"
    GAIN_LOSS = "GAIN_LOSS"
    AUM_FEE = "AUM_FEE"


class LedgerPosition(msgspec.Struct, frozen=True):
    """A position in a customer's log: the last journal entry read, and the commit that contains it.

    `chain` is the hash, in hex, over everything in the customer's log up to the end of that commit. All fields are zero
    or empty before the first commit.
    """

    version: int
    entry_no: int
    chain: str


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """An account for display. `number` is that of the Pocket's first portal, or else a number derived for it."""

    type: AccountType
    customer_id: UUID
    owner: str
    pocket_id: UUID
    name: str
    number: str
    routing_number: str
    bank: str
    currency: str = "USD"

    @property
    def own_number(self) -> str:
        """A distinct number: both accounts of a Pocket share one, and some formats would take them for one account."""
        return self.number if self.type == AccountType.BANK else f"{self.number}-B"


class Period(msgspec.Struct, frozen=True):
    """Eastern days, both included, from the first instant to the end, which is excluded.

    If it is not closed, the last day is not over: the period ends with the entries booked by `ends_at`.
    """

    first_day: date
    last_day: date
    starts_at: datetime
    ends_at: datetime
    is_closed: bool


class Security(msgspec.Struct, frozen=True):
    """A bill that an entry is about."""

    cusip: str
    isin: str
    maturity: date


class References(msgspec.Struct, frozen=True, kw_only=True):
    """References to a payment used by others, of any length and in any characters.

    `end_to_end` is the payer's, `instruction` that of the payer's bank, `clearing` that of the network: an IMAD or a
    trace number; `transaction` that of a chain.
    """

    instruction: str | None = None
    end_to_end: str | None = None
    uetr: str | None = None
    transaction: str | None = None
    clearing: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        """All of them without duplicates, the payer's first."""
        found = self.end_to_end, self.clearing, self.instruction, self.transaction, self.uetr
        return tuple(dict.fromkeys(each for each in found if each))


class AccountEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. `amount` is in cents, below zero for a debit, never zero.

    `reference` is unique within the account, up to 35 characters. `references`, `counterparty` and the texts come from
    outside and may hold any character. `documents` are the invoices that the payment settles. `units` are those of
    bills that
    moved in kind.
    """

    kind: EntryKind
    amount: int
    reference: str
    booked_at: datetime
    booked_on: date
    value_on: date
    title: str
    description: str = ""
    counterparty: str | None = None
    remittance: tuple[str, ...] = ()
    documents: tuple[SettledDocument, ...] = ()
    references: References = References()
    transaction_id: UUID | None = None
    entry_no: int | None = None
    is_reversal: bool = False
    is_direct_debit: bool = False
    security: Security | None = None
    units: int | None = None
    external_id: str | None = None
    metadata: Mapping[str, str] = {}

    @property
    def note(self) -> str | None:
        """The description, unless it repeats the remittance."""
        return None if self.description.split() == " ".join(self.remittance).split() else self.description

    @property
    def purpose(self) -> tuple[str, ...]:
        """The purpose of the payment, without duplicates: description, remittance, and documents in words."""
        parts = (self.note, *self.remittance, *self.words_of_documents)
        return tuple(dict.fromkeys(each for each in parts if each))

    def own_reference(self, length: int) -> str:
        """Return a reference that distinguishes the payment, with this maximum length.

        For a payment made by the account owner it is the owner's reference, otherwise that of the network, whose end
        is unique within a day.
        """
        names = self.references
        if self.amount < 0:
            own = names.end_to_end if len(names.end_to_end or "") <= length else None
            found = own or names.instruction or names.clearing or names.end_to_end
        else:
            found = names.clearing or names.instruction or names.end_to_end
        return (found or names.transaction or "")[-length:]

    @property
    def words_of_documents(self) -> tuple[str, ...]:
        """The documents that the payment settles, one line each."""
        return tuple(map(_in_words, self.documents))


def _in_words(document: SettledDocument) -> str:
    paid = " ".join(filter(None, (document.amount, document.currency)))
    named = document.type, document.number, document.date, document.reference, paid, document.information
    return " ".join(filter(None, named))


class EntryTotals(msgspec.Struct, frozen=True):
    """The number of entries on either side, and their sums in cents, both positive."""

    credits: int = 0
    credited: int = 0
    debits: int = 0
    debited: int = 0

    @property
    def net(self) -> int:
        """The net change."""
        return self.credited - self.debited

    def add(self, *amounts: int) -> EntryTotals:
        """Return the totals including these entries."""
        into = [each for each in amounts if each > 0]
        out = [-each for each in amounts if each < 0]
        return EntryTotals(
            self.credits + len(into), self.credited + sum(into), self.debits + len(out), self.debited + sum(out)
        )


class Holding(msgspec.Struct, frozen=True):
    """Units of a bill at a price in micros per $100, and their value in cents."""

    security: Security
    units: int
    price_micros: int
    value: int


class Balance(msgspec.Struct, frozen=True):
    """The value of an account at an instant, in cents: cash and, for a brokerage account, bills."""

    cash: int = 0
    holdings: tuple[Holding, ...] = ()

    @property
    def value(self) -> int:
        """Cash and bills together."""
        return self.cash + sum(each.value for each in self.holdings)


class AccountStatement(msgspec.Struct, frozen=True, kw_only=True):
    """An account over a period: the opening value plus all entries is the closing value, in cents.

    `position` is the end of the log as read: read up to there, the statement is the same at any later time. Its
    entries come after the journal entry `entries_after`. `gains` are the entries without a payment: the gain or loss of
    each bill, realised and unrealised together.
    """

    account: Account
    period: Period
    opening: Balance
    closing: Balance
    totals: EntryTotals
    gains: tuple[AccountEntry, ...]
    entries_after: int
    position: LedgerPosition


class ListedTransaction(NamedTuple):
    """A transaction, whether its journal entry reverses another, and the counterparty of an ACH entry of this bank.

    A payment by ACH counts as settled at `ach_settled_at`, by its actual or planned window.
    The other fields are references of a wire; an outgoing one has an IMAD if it was sent within the period.
    """

    row: TransactionRow
    is_reversal: bool = False
    ach_party: str | None = None
    ach_settled_at: datetime | None = None
    end_to_end_id: str | None = None
    uetr: str | None = None
    imad: str | None = None


class Movements(NamedTuple):
    """The activity of a Pocket: payments as count and cents by whether they are credits, and trades."""

    payments: dict[bool, tuple[int, int]]
    trades: list[TradeTotal]


class TradeTotal(NamedTuple):
    """Trades of one bill in one direction, for cash or in kind: their number, units, and cents."""

    cusip: str
    incoming: bool
    is_paid: bool
    trades: int
    units: int
    cents: int


class TransferInKind(NamedTuple):
    """Bills transferred without payment, at their market value in cents."""

    entry_no: int
    trade_id: UUID
    incoming: bool
    cusip: str
    units: int
    cents: int
    traded_at: datetime
    settles_on: date
