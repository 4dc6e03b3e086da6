"""A list whose filters stand in the address: they are those of an operation, by names of the page.

A filter that the operation refuses is shown again beside its mistake, as a form is.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from billfold.accounts.pockets.routes import list_own_pockets
from billfold.http.operations import Operation
from billfold.http.raw_request import is_uuid
from billfold.http.schemas import CursorList
from billfold.platform.database.paging import LIMIT_MAX
from billfold.platform.errors import FieldError, InvalidInput
from billfold.web.console.team import ApiTeam, Company
from billfold.web.forms import cents_of

_CHOICES_MAX = 50
_NOTHING: CursorList[Any] = CursorList(prev_page=None, next_page=None, items=[])


class Listing(NamedTuple):
    """A page of a list, the filters as they were sent, and what was wrong with them.

    `backwards` says that the page was reached by the link to newer rows.
    """

    rows: CursorList[Any]
    filters: dict[str, str]
    wrong: InvalidInput | str
    backwards: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether there are pages beside this one."""
        return bool(self.rows.next_page or self.rows.prev_page)


async def read_listing(team: ApiTeam, operation: Operation, names: Mapping[str, str], limit: int) -> Listing:
    """Return what an operation lists by the filters of the address.

    `names` are those of its query by the names in the address. Amounts are dollars there, cents in the operation.
    """
    sent = team.page.query
    filters = {name: sent[name].strip() for name in names if sent.get(name, "").strip()}
    try:
        values = operation_filters(filters, names)
        rows = await team.api.get(operation, **values, limit=limit, cursor=sent.get("cursor"))
    except InvalidInput as wrong:
        return Listing(_NOTHING, filters, _in_address(wrong, names))
    return Listing(rows, filters, "", backwards=sent.get("way") == "newer")


def operation_filters(filters: Mapping[str, str], names: Mapping[str, str]) -> dict[str, object]:
    """Return filters of the address as an operation takes them. Raises InvalidInput."""
    return {
        names[name]: cents_of(name, text) if name.startswith("amount") else text
        for name, text in filters.items()
        if name in names
    }


async def list_choices(
    company: Company, shown: Iterable[object], chosen: str = "", *, limit: int = _CHOICES_MAX
) -> dict[str, str]:
    """Return the names of the newest Pockets by their ids, to be chosen from, and of those `shown` and `chosen`."""
    listed = await company.api.get(list_own_pockets, limit=limit, omit="PORTFOLIO")
    names = {str(each.id): each.pocket_name for each in listed.items}
    wanted = {*map(str, shown), *([chosen.lower()] if is_uuid(chosen) else [])}
    return names | await names_of_pockets(company, wanted - names.keys())


async def names_of_pockets(company: Company, pocket_ids: Iterable[object]) -> dict[str, str]:
    """Return the names of Pockets by their ids: of as many as a page of a list may be about. Raises NotFound."""
    wanted = sorted({str(each) for each in pocket_ids})[:LIMIT_MAX]
    if not wanted:
        return {}
    filters = {"pocket_id[]": wanted, "limit": LIMIT_MAX, "omit": "PORTFOLIO"}
    return {str(each.id): each.pocket_name for each in (await company.api.get(list_own_pockets, **filters)).items}


def _in_address(wrong: InvalidInput, names: Mapping[str, str]) -> InvalidInput | str:
    """Return the mistakes under the names of the address; those of no filter as a sentence."""
    own = {operation_name: name for name, operation_name in names.items()}
    found = [
        FieldError((own.get(str(each.loc[1]), each.loc[1]),), each.msg, each.type)
        for each in wrong.errors
        if each.loc[1:]
    ]
    if all(each.loc[0] in names for each in found):
        return InvalidInput(found)
    return "The list has changed since. Begin with its first page."
