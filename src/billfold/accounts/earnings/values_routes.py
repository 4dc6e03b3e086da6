"""What a Pocket was worth at the ends of its days."""

from datetime import date, time, timedelta
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.earnings.routes import READS
from billfold.accounts.pockets import history
from billfold.accounts.pockets import store as pocket_store
from billfold.accounts.pockets.history import Boundary
from billfold.accounts.pockets.schemas import valuation
from billfold.bills.rules.earnings import require_prices, value_at
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, get
from billfold.http.parameters import DayQuery, Query
from billfold.http.schemas import Amount, usd
from billfold.ledger.bank import Bank
from billfold.platform.dates import et_date, et_instant

VALUES_MAX = 100
_DAY = timedelta(days=1)


class DayValue(msgspec.Struct, kw_only=True):
    """What a Pocket was worth when a day ended, Eastern; today, what it is worth now."""

    date: date
    total_value: Amount


class PocketValues(msgspec.Struct, kw_only=True):
    """Values of days at even distances, the oldest first. The last is that of the last day of the range."""

    items: list[DayValue]
    object_type: Literal["PocketValues"] = "PocketValues"


@get("/api/v2/pockets/{pocket_id}/values/", SIGNED, READS, tag="earnings")
async def list_pocket_values(
    caller: Call,
    bank: Bank,
    pocket_id: UUID,
    date_from: Annotated[DayQuery, Query(description="A date; by default that of the Pocket's opening.")] = None,
    date_to: Annotated[DayQuery, Query(description="A date; today by default.")] = None,
) -> PocketValues:
    """List values of a Pocket.

    Its total value at the end of each day of a range, as earnings have it. Of a range of more than 100 days there is a
    value every second day, or every third, and so on.
    """
    require_prices(bank.market, date_from=date_from, date_to=date_to)
    row = await pocket_store.get_pocket(bank.pool, *await caller.pocket(bank, pocket_id))
    today = et_date(caller.now)
    last = min(date_to or today, today)
    first = max(date_from or et_date(row.opened_at), et_date(row.opened_at))
    days = _days(first, last)
    past = [each for each in days if each < today]
    ends = [et_instant(each + _DAY, time()) for each in past]
    states = await history.pocket_states_before(
        bank.pool, [Boundary(row.customer_id, row.pocket_id, bank.calendars.business_date(at), at=at) for at in ends]
    )
    values = [value_at(state, at, bank.market) for state, at in zip(states, ends, strict=True)]
    if len(past) < len(days):
        values.append(valuation(row, bank, caller.now).total_value)
    return PocketValues(
        items=[DayValue(date=day, total_value=usd(cents)) for day, cents in zip(days, values, strict=True)]
    )


def _days(first: date, last: date) -> list[date]:
    """Return days of a range at even distances, its last among them; none if it is empty."""
    span = (last - first).days
    found = [last - _DAY * n for n in range(0, span + 1, abs(span) // VALUES_MAX + 1)]
    return found[::-1]
