"""Statements of a customer, each with a temporary URL of its PDF."""

import re
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.pockets.requests import resolve_pockets
from billfold.accounts.pockets.routes import V1_READS
from billfold.http.caller import Call
from billfold.http.operations import MaybeInPath, get, with_scope
from billfold.http.parameters import OrderedQuery, Query, page_of, parse_choice
from billfold.http.schemas import CursorList, one_of
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.database.paging import LIMIT_DEFAULT
from billfold.platform.errors import InvalidInput
from billfold.reports.downloads import temporary_url
from billfold.reports.statements.store import STATEMENTS, StatementFilters, StatementRow, StatementType

TYPES = {each.value: each for each in StatementType} | {
    each.value.replace("-", ""): each for each in StatementType if each.startswith("1099-")
}
"""Types by every spelling that the filter accepts."""


class Statement(msgspec.Struct, kw_only=True):
    """A statement. `key` is its month, or the year of a tax form. A corrected one has a higher version and a reason."""

    id: UUID
    service_account_id: UUID
    type: Annotated[str, one_of(*StatementType)]
    key: str
    version: int
    reason: str | None
    pdf_download_url: Annotated[str, msgspec.Meta(max_length=2083)]
    time_created: datetime
    object_type: Literal["Statement"] = "Statement"


LIMIT_MAX = 150
_KEY = re.compile(r"^[0-9]{4}(-(0[1-9]|1[0-2]))?$")
READS = with_scope("pockets.read", "statements")


def _parse_type(name: str, text: str) -> str:
    return TYPES[parse_choice(list(TYPES), name, text)]


def _parse_key(name: str, text: str) -> str:
    if not _KEY.fullmatch(text):
        raise InvalidInput.at("query", name, msg="must be a month like 2023-01 or a year like 2023", kind="value_error")
    return text


class StatementQuery(OrderedQuery, frozen=True):
    """Page parameters: up to 150 statements."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=LIMIT_MAX), Query(description="Maximum row count.")] = LIMIT_DEFAULT


Accounts = Annotated[list[UUID] | None, Query(name="account[]")]
Types = Annotated[
    list[str] | None, Query(name="type[]", parse=_parse_type, schema={"type": "string", "enum": list(TYPES)})
]
Key = Annotated[
    str | None,
    Query(
        parse=_parse_key,
        schema={"type": "string", "pattern": _KEY.pattern},
        description="A month like 2023-01, or a year like 2023 with all its months and its tax forms.",
    ),
]


@get("/api/v1/customers/{customer_id}/statements/", as_of=True)
@get("/api/v1/statements/", READS, name="list_statements", refuses=("not-found",), as_of=True)
async def list_customer_statements(
    *,
    caller: Call,
    bank: Bank,
    customer_id: MaybeInPath,
    wanted: StatementQuery,
    account: Accounts = None,
    type: Types = None,  # noqa: A002 - its name in the query
    key: Key = None,
) -> CursorList[Statement]:
    """List statements.

    Returns monthly statements and tax forms. The URLs are valid for 10 minutes.
    """
    owner = await caller.owner(bank, customer_id)
    pockets = None if account is None else await resolve_pockets(caller, bank, owner, requested=account)
    filters = StatementFilters(pockets=pockets, types=type, key=key)
    return await _page(caller, bank, wanted, owner=owner, filters=filters)


@get("/api/v1/service-accounts/{account_id}/statements/", deprecated=V1_READS, as_of=True)
async def list_account_statements(
    *,
    caller: Caller,
    bank: Bank,
    account_id: UUID,
    wanted: StatementQuery,
    type: Types = None,  # noqa: A002 - its name in the query
    key: Key = None,
) -> CursorList[Statement]:
    """List statements of an account.

    Returns monthly statements and tax forms. The URLs are valid for 10 minutes.
    """
    owner, pocket_id = await caller.pocket(bank, account_id)
    filters = StatementFilters(pockets=[pocket_id], types=type, key=key)
    return await _page(caller, bank, wanted, owner=owner, filters=filters)


async def _page(
    caller: Call, bank: Bank, wanted: StatementQuery, *, owner: UUID, filters: StatementFilters
) -> CursorList[Statement]:
    values = (*msgspec.structs.astuple(filters), caller.as_of)
    page = await wanted.read(bank, STATEMENTS, owner, *values, scope=f"statements:{owner}")
    return page_of(page, [_render(caller, bank, row) for row in page.items])


def _render(caller: Call, bank: Bank, row: StatementRow) -> Statement:
    return Statement(
        id=row.statement_id,
        service_account_id=row.pocket_id,
        type=row.type,
        key=row.key,
        version=row.version,
        reason=row.reason,
        pdf_download_url=temporary_url(bank.vault, caller.host, row, caller.wall).url,
        time_created=row.created_at,
    )
