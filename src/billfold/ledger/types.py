"""Kinds of accounts, journal entries, transactions and trades; the versions of the agreements."""

from collections.abc import Iterable
from datetime import date, datetime
from enum import StrEnum
from typing import Generic, Literal, NamedTuple, Self, TypeVar
from uuid import UUID

import msgspec
from typing_extensions import override


class Direction(StrEnum):
    """For money: into the pocket or out of it. For an ACH entry: to its receiver or from it."""

    CREDIT = "CREDIT"
    DEBIT = "DEBIT"


class Rail(StrEnum):
    """The payment network of a payment."""

    ACH = "ACH"
    CARD = "CARD"
    CUSTODY = "CUSTODY"
    WIRE = "WIRE"
    INTERNATIONAL_WIRE = "INTERNATIONAL_WIRE"
    ON_US = "ON_US"
    CRYPTO = "CRYPTO"


_DEALER = "dealer:"


class AccountKind(StrEnum):
    """The contents of an account. The kinds of a pocket come first, then the bank's side of a customer."""

    BANK = "bank"
    CASH = "cash"
    OWED = "owed"
    LOT = "lot"
    CUSTODIAN = "custodian"
    DISPUTES = "disputes"
    CARD_FEES = "card_fees"
    FEES = "fees"
    INTERCHANGE = "interchange"
    INVENTORY = "inventory"
    LOSSES = "losses"
    ON_US = "on_us"
    PROMOTIONS = "promotions"
    REDEMPTIONS = "redemptions"
    RAIL_ACH = "rail:ach"
    RAIL_CARD = "rail:card"
    RAIL_CRYPTO = "rail:crypto"
    RAIL_WIRE = "rail:wire"
    RESERVE = "reserve"
    ROUNDING = "rounding"
    STREET = "street"
    SUSPENSE = "suspense"
    TRADING_GAINS = "trading_gains"
    TREASURY = "treasury"

    @classmethod
    @override
    def _missing_(cls, value: object) -> "AccountKind | None":
        """Return the kind of a dealer's accounts: dealers are named in the settings."""
        if not (isinstance(value, str) and value.startswith(_DEALER)):
            return None
        kind = str.__new__(cls, value)
        kind._name_, kind._value_ = value.upper(), value
        return cls._value2member_map_.setdefault(value, kind)  # type: ignore[return-value]  # as `Flag` does

    @classmethod
    def of_dealer(cls, dealer: str) -> "AccountKind":
        """Return the accounts of a dealer."""
        return cls(f"{_DEALER}{dealer}")

    @classmethod
    def of_rail(cls, rail: str) -> "AccountKind":
        """Return the account of a rail."""
        return cls(f"rail:{rail.lower()}")


DERIVED_BALANCES = frozenset({AccountKind.BANK, AccountKind.ON_US, AccountKind.STREET, AccountKind.TREASURY})
"""Kinds of accounts whose balance no row stores: it is the sum of their postings."""


class JournalKind(StrEnum):
    """The subject of a journal entry."""

    ACH = "ach"
    ADJUSTMENT = "adjustment"
    CARD = "card"
    CLEARING = "clearing"
    CUSTODY = "custody"
    DEALER_SETTLEMENT = "dealer_settlement"
    DEPOSIT = "deposit"
    EXECUTION = "execution"
    FEE = "fee"
    INVEST = "invest"
    MATURITY = "maturity"
    ON_US = "on_us"
    PAYMENT = "payment"
    REDEMPTION = "redemption"
    RECONCILIATION = "reconciliation"
    RETURN = "return"
    SETTLEMENT = "settlement"
    SUSPENSE = "suspense"
    TRADING_RESULT = "trading_result"


class TransactionType(StrEnum):
    """The type of a transaction as the customer sees it."""

    ACH = "ACH"
    CARD = "CARD"
    CREDIT = "CREDIT"
    FEE = "FEE"
    GENERIC = "GENERIC"
    ON_US = "ON_US"
    WIRE = "WIRE"


class TradeActivity(StrEnum):
    """The reason bills came or went. For a settlement it is the side."""

    BUY = "BUY"
    SELL = "SELL"
    MATURITY = "MATURITY"
    SAME_ENTITY_SECURITY_TRANSFER = "SAME_ENTITY_SECURITY_TRANSFER"
    EXTERNAL_SECURITY_TRANSFER = "EXTERNAL_SECURITY_TRANSFER"


class PocketStatus(StrEnum):
    """A frozen pocket can receive money but not send it."""

    OPEN = "OPEN"
    FROZEN = "FROZEN"
    CLOSED = "CLOSED"


NOT_CLOSED = frozenset({PocketStatus.OPEN, PocketStatus.FROZEN})
"""States in which a pocket can receive money."""


class AgreementTerms(NamedTuple):
    """A version of the agreements, named by its effective date, like `2025-06-01`.

    A customer that has not accepted it by the start of `required_by` can make no payments after that.
    """

    version: str
    required_by: date | None


class Agreements:
    """The versions that a process knows. One object per process, refreshed from their table."""

    def __init__(self, published: Iterable[AgreementTerms] = ()) -> None:
        self.published = tuple(published)

    def in_force(self, today: date) -> str | None:
        """Return the version in force on a day; before the first release day that is the first."""
        versions = [each.version for each in self.published]
        released = [each for each in versions if each <= today.isoformat()]
        return max(released, default=min(versions, default=None))

    def is_released(self, version: str, today: date) -> bool:
        """Tell whether there is such a version, current or replaced, on a day."""
        return any(each.version == version for each in self.published) and version <= (self.in_force(today) or "")

    def required(self, today: date) -> str | None:
        """Return the version that a customer must have accepted by a day to make payments, or None."""
        due = [each.version for each in self.published if each.required_by and each.required_by <= today]
        return max(due, default=None)


Actor = Literal["MEMBER", "CLIENT", "PARTNER", "OPERATOR", "SYSTEM", "INVITED"]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a change: who made it, and from where.

    A member may act through a client, `client_id`. Their name is looked up when it is None.
    """

    kind: Actor
    name: str | None = None
    member_id: UUID | None = None
    client_id: str | None = None
    ip_address: str | None = None
    user_agent: str | None = None

    @classmethod
    def operator(cls) -> Self:
        """Return the origin of changes made on the command line."""
        return cls(kind="OPERATOR", name="operator")

    @classmethod
    def system(cls) -> Self:
        """The bank itself."""
        return cls(kind="SYSTEM", name="billfold")


class ScheduledJob(NamedTuple):
    """A job: its kind, its object, its customer, and its due time."""

    kind: str
    object_id: UUID
    customer_id: UUID | None
    at: datetime

    @property
    def name(self) -> str:
        """The name under which its failures are recorded."""
        return f"{self.kind} {self.object_id}"


Payload = TypeVar("Payload", bound=msgspec.Struct)


class EventKind(msgspec.Struct, Generic[Payload], frozen=True):
    """A kind of event. `partner` and `customer` say which API can see it."""

    name: str
    meaning: str
    """One sentence: when it is raised."""
    example: Payload
    partner: bool = False
    customer: bool = False
    version: int = 1
    """Increased by one whenever fields are added to the payload."""

    @property
    def payload(self) -> type[Payload]:
        """The shape of the payload."""
        return type(self.example)
