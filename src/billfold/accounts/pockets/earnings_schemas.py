"""What Pockets earned: additive Amounts only, so that `aggregate` is the exact sum."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.bills.rules import earnings as earnings_module
from billfold.bills.rules.earnings import EarningsEntry
from billfold.http.schemas import Amount, format_appreciation, usd

# A client could not decode a union of dates and date-times: both are texts.
EarningsBound = Annotated[str, msgspec.Meta(description="A date, or a date-time.")]
"""A day, included; of a range that was given by date-times an instant."""


class Earnings(msgspec.Struct, kw_only=True):
    """One entry. `earnings` is before fees: realised plus the change of unrealised."""

    pocket_id: UUID | UnsetType = UNSET
    earnings: Amount
    earnings_net: Amount
    fees: Amount
    realised: Amount
    unrealised_change: Amount
    contributions: Amount
    withdrawals: Amount
    start_value: Amount
    end_value: Amount
    date_from: EarningsBound | None
    date_to: EarningsBound
    pricing_timestamp: datetime | None = None
    appreciation_per_second: str | None = None
    object_type: str = "PocketEarnings"


class EarningsList(msgspec.Struct, kw_only=True):
    """One entry per Pocket and their sum, field by field."""

    items: list[Earnings]
    aggregate: Earnings
    object_type: Literal["EarningsList"] = "EarningsList"


class PocketEarnings(msgspec.Struct, frozen=True, kw_only=True):
    """An entry before it is shown. The slope is there for pockets with real-time yield."""

    pocket_id: UUID
    entry: EarningsEntry
    dates: tuple[date, date]
    priced_at: datetime | None
    slope: Decimal | None


def render_earned(earned: PocketEarnings, *, with_pocket_id: bool) -> Earnings:
    """One entry, with its pocket's id in a list."""
    slope = earned.slope
    return Earnings(
        pocket_id=earned.pocket_id if with_pocket_id else UNSET,
        **_amounts(earned.entry),  # type: ignore[arg-type]
        date_from=_bound(earned.dates[0]),
        date_to=_bound(earned.dates[1]),
        pricing_timestamp=earned.priced_at,
        appreciation_per_second=None if slope is None else format_appreciation(slope),
    )


def render_all(all_earned: list[PocketEarnings], today: date) -> EarningsList:
    """Every entry, and the exact sum."""
    appreciations = [each.slope for each in all_earned if each.slope is not None]
    priced_at_times = [each.priced_at for each in all_earned if each.priced_at is not None]
    return EarningsList(
        items=[render_earned(each, with_pocket_id=True) for each in all_earned],
        aggregate=Earnings(
            **_amounts(  # type: ignore[arg-type]
                earnings_module.sum_earnings(each.entry for each in all_earned)
            ),
            date_from=_bound(min(each.dates[0] for each in all_earned)) if all_earned else None,
            date_to=_bound(max((each.dates[1] for each in all_earned), default=today)),
            pricing_timestamp=max(priced_at_times, default=None),
            appreciation_per_second=format_appreciation(sum(appreciations, Decimal(0))) if appreciations else None,
            object_type="AggregateEarnings",
        ),
    )


def _bound(day_or_instant: date) -> str:
    text: str = msgspec.to_builtins(day_or_instant)
    return text


def _amounts(entry: EarningsEntry) -> dict[str, Amount]:
    return {name: usd(cents) for name, cents in entry._asdict().items()}
