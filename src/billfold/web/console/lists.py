"""A list whose filters are in the query: they are those of an operation, under the page's names.

A filter that the operation refuses is shown again with its error, as in a form.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from billfold.accounts.pockets.routes import list_own_pockets
from billfold.http.operations import Operation
from billfold.http.raw_request import is_uuid
from billfold.http.schemas import CursorList
from billfold.platform.database.paging import LIMIT_MAX
from billfold.platform.dates import et_date, is_day, parse_day
from billfold.platform.errors import FieldError, InvalidInput, NotFound
from billfold.web.console.team import AS_OF, ApiTeam, Company
from billfold.web.forms import cents_of
from billfold.web.page_context import FormError

TRANSACTION_FILTERS = {
    "pocket": "pocket[]",
    "type": "type[]",
    "direction": "direction",
    "from": "time_booked_from",
    "to": "time_booked_to",
    "amount_from": "amount_from",
    "amount_to": "amount_to",
    "portal": "portal[]",
    "text": "text",
    AS_OF: "as_of",
}
"""The filters of transactions as pages name them, and as their operations do."""
_CHOICES_MAX = 50
Choices = Mapping[str, Mapping[str, Sequence[str]]]
_ALL: Choices = {}
NO_ROWS: CursorList[Any] = CursorList(prev_page=None, next_page=None, items=[])


class Preset(NamedTuple):
    """A range of days that is often wanted; both are included."""

    label: str
    first: date
    last: date


def presets_of(today: date) -> tuple[Preset, ...]:
    """Return the ranges that a list by days offers."""
    month = today.replace(day=1)
    before = month - timedelta(days=1)
    return (
        Preset("This month", month, today),
        Preset("Last month", before.replace(day=1), before),
        Preset("This year", today.replace(month=1, day=1), today),
    )


class Listing(NamedTuple):
    """A page of a list, the filters as they were sent, and their errors.

    `backwards` is true if the page was reached by the link to newer rows.
    """

    rows: CursorList[Any]
    filters: dict[str, str]
    wrong: FormError
    backwards: bool = False
    presets: Sequence[Preset] = ()

    @property
    def day(self) -> date | None:
        """Return the business day that the rows are as of, None if they are those of now."""
        text = self.filters.get(AS_OF, "")
        return parse_day(text) if is_day(text) else None

    @property
    def goes_on(self) -> bool:
        """Return whether there are other pages."""
        return bool(self.rows.next_page or self.rows.prev_page)


async def read_listing(
    team: ApiTeam, operation: Operation, names: Mapping[str, str], limit: int, choices: Choices = _ALL
) -> Listing:
    """Return the list of an operation with the filters of the query.

    `names` maps the operation's parameters to the page's. Amounts are dollars in the query, cents in the operation;
    `choices` are words of the page that stand for several values of the operation.
    """
    sent = team.page.query
    filters = {name: sent[name].strip() for name in names if sent.get(name, "").strip()}
    presets = presets_of(et_date(team.clock.now)) if {"from", "to"} <= names.keys() else ()
    try:
        values = operation_filters(filters, names, choices)
        rows = await team.api.get(operation, **values, limit=limit, cursor=sent.get("cursor"))
    except InvalidInput as wrong:
        return Listing(NO_ROWS, filters, _in_address(wrong, names), presets=presets)
    except NotFound:
        if AS_OF not in filters:
            raise
        return Listing(NO_ROWS, filters, "There was nothing of this yet on that day.", presets=presets)
    if AS_OF in filters:
        team.look_back()
    return Listing(rows, filters, "", backwards=sent.get("way") == "newer", presets=presets)


def operation_filters(
    filters: Mapping[str, str], names: Mapping[str, str], choices: Choices = _ALL
) -> dict[str, object]:
    """Return filters of the query in the form an operation takes. Raises InvalidInput."""
    return {
        names[name]: cents_of(name, text) if name.startswith("amount") else choices.get(name, {}).get(text, text)
        for name, text in filters.items()
        if name in names
    }


async def list_choices(
    company: Company, shown: Iterable[object], chosen: str = "", *, limit: int = _CHOICES_MAX
) -> dict[str, str]:
    """Return the names of the newest Pockets by their ids, as options, and of those `shown` and `chosen`."""
    listed = await company.api.get(list_own_pockets, limit=limit, omit="PORTFOLIO")
    names = {str(each.id): each.pocket_name for each in listed.items}
    wanted = {*map(str, shown), *([chosen.lower()] if is_uuid(chosen) else [])}
    return names | await names_of_pockets(company, wanted - names.keys())


async def names_of_pockets(company: Company, pocket_ids: Iterable[object]) -> dict[str, str]:
    """Return the names of Pockets by their ids. Raises NotFound."""
    wanted, names = sorted({str(each) for each in pocket_ids}), dict[str, str]()
    for start in range(0, len(wanted), LIMIT_MAX):
        filters = {"pocket_id[]": wanted[start : start + LIMIT_MAX], "limit": LIMIT_MAX, "omit": "PORTFOLIO"}
        listed = await company.api.get(list_own_pockets, **filters)
        names |= {str(each.id): each.pocket_name for each in listed.items}
    return names


def _in_address(wrong: InvalidInput, names: Mapping[str, str]) -> InvalidInput | str:
    """Return the errors under the page's names; those that concern no filter as a sentence."""
    own = {operation_name: name for name, operation_name in names.items()}
    found = [
        FieldError((own.get(str(each.loc[1]), each.loc[1]),), each.msg, each.type)
        for each in wrong.errors
        if each.loc[1:]
    ]
    if all(each.loc[0] in names for each in found):
        return InvalidInput(found)
    return "The list has changed since. Begin with its first page."
