"""A table of payments: pasted from a spreadsheet, previewed with what is wrong in its cells, and requested."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from litestar import get, post
from rapidfuzz import fuzz, process, utils

from billfold.accounts.counterparties.routes import list_counterparties
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.customers.store import list_features
from billfold.accounts.pockets.routes import list_own_pockets
from billfold.batches.routes import create_batch, preview_batch
from billfold.batches.rows import Line
from billfold.batches.types import ROWS_MAX
from billfold.http.raw_request import is_uuid
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.money import format_usd
from billfold.web.company.batches.tables import (
    TABLE_BYTES_MAX,
    PastedRow,
    cells_of,
    ignored_in,
    read_table,
    with_problems,
)
from billfold.web.company.move_money import why_not_payable
from billfold.web.console.lists import names_of_pockets
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import cents_of
from billfold.web.page_context import FormError, PageResponse, redirect

_SCOPE = "transfers.write"
_CHOICES = 100
_HEADINGS = {
    "to": ("to", "payee", "recipient", "counterparty", "name", "pocket", "counterparty id"),
    "amount": ("amount", "amount $", "amount usd", "usd", "sum"),
    "description": ("description", "memo", "note", "text"),
    "reference": ("reference", "invoice", "end to end identification"),
    "key": ("key", "idempotency key", "external id"),
}
_CELL_OF = {
    "amount_usdc": "amount",
    "from_pocket_id": "to",
    "counterparty_id": "to",
    "to_pocket_id": "to",
    "end_to_end_identification": "reference",
    "idempotency_key": "key",
}
"""Field of a row -> its column, where they differ."""
_MISSING = "Name,Routing number,Account number,Street,City,State,Postal code"
_SEVERAL = "Several have this name: write the last four digits of the account behind it, or the id."
_UNKNOWN = "No payee or Pocket has this name."
_WALLET = "USDC wallet: it is paid by a single transfer, not in a batch."
_ALIKE, _COMPARED_MAX = 85, 50


class Payee(NamedTuple):
    """A payee that a cell can name: the fields of a row that it gives, how it is shown, and why it cannot be paid."""

    name: str
    fields: Mapping[str, str]
    shown: Mapping[str, str] = {}
    why: str = ""


@get("/companies/{customer_id:str}/batches/new")
async def show_new_batch(company: InCompany) -> PageResponse:
    """Show the form for a table."""
    company.require(_SCOPE)
    return await _form(company, company.page.query)


@post("/companies/{customer_id:str}/batches/new", body_bytes_max=TABLE_BYTES_MAX)
async def add_batch(company: InCompany) -> PageResponse:
    """Preview a table, request its transfers, or go back to the form."""
    company.require(_SCOPE)
    form = company.page.form
    if form.get("step") == "change":
        return await _form(company, form)
    try:
        pasted = await _read_table(company, form)
        body = {
            "kind": "TRANSFERS",
            "mode": form.get("mode", "ATOMIC"),
            "rows": [each.row for each in pasted if each.row],
        }
        if form.get("step") == "request" and all(each.row for each in pasted):
            made = await company.api.send(create_batch, body, key=company.page.form_key)
            return redirect(f"{company.path}/batches/{made.id}", done="batch-requested")
        found = await company.api.send(preview_batch, body) if body["rows"] else None
    except (InvalidInput, Refused) as wrong:
        return await _form(company, form, wrong)
    return await _preview_page(company, pasted, found)


async def _preview_page(company: Company, pasted: Sequence[PastedRow], found: Any) -> PageResponse:  # noqa: ANN401 - as the API shows it
    form = company.page.form
    rows = with_problems(pasted, found.problems if found else (), _CELL_OF, "to")
    missing = list(dict.fromkeys(each.cells["to"] for each in rows if each.wrong.get("to", "").startswith(_UNKNOWN)))
    wrong = sum(bool(each.wrong) for each in rows)
    return company.render(
        "batch_preview",
        rows=rows,
        columns=[name for name in _HEADINGS if any(each.cells.get(name) for each in rows)],
        wrong_rows=wrong,
        ignored=ignored_in(rows),
        missing=[each for each in missing if each],
        missing_table="\n".join([_MISSING, *(f'"{each.replace(chr(34), chr(34) * 2)}"' for each in missing if each)]),
        total=format_usd(sum(each.row["amount_usdc"] for each in rows if each.row)),
        preview=found,
        paying=[(each.pocket_id, each) for each in found.pockets] if found else [],
        names=await names_of_pockets(company, [each.pocket_id for each in found.pockets] if found else []),
        may_request=not any(each.row is None for each in rows) and not (wrong and form.get("mode") != "INDEPENDENT"),
        given={name: form.get(name, "") for name in ("origin", "mode", "table")},
    )


async def _form(company: Company, given: Mapping[str, str], wrong: FormError = "") -> PageResponse:
    pockets = (await company.api.get(list_own_pockets, **{"filter[status]": "OPEN"}, limit=_CHOICES)).items
    chosen = {name: given.get(name, "") for name in ("origin", "mode", "table")}
    return company.render("batch_new", wrong=wrong, pockets=pockets, given=chosen)


async def _read_table(company: Company, form: Mapping[str, str]) -> list[PastedRow]:
    """Return the lines of the pasted table as rows. Raises InvalidInput for what concerns all of them."""
    if not is_uuid(form.get("origin", "")):
        raise InvalidInput.at("origin", msg="must be chosen")
    columns, lines = read_table(form.get("table", ""), _HEADINGS, required=("to", "amount"))
    payees = await _find_payees(company)
    pasted = [_read_line(line, columns, payees, form["origin"]) for line in lines]
    unknown = dict.fromkeys(each.cells["to"] for each in pasted if each.wrong.get("to") == _UNKNOWN)
    names = {each.name for named in payees.values() for each in named if not each.why}
    near = await asyncio.to_thread(_nearest, list(unknown)[:_COMPARED_MAX], names)
    return [
        each._replace(wrong={**each.wrong, "to": f"{_UNKNOWN} Did you mean {near[each.cells['to']]}?"})
        if each.wrong.get("to") == _UNKNOWN and each.cells["to"] in near
        else each
        for each in pasted
    ]


def _nearest(unknown: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Return the payable name that is the most like each unknown one, if any is."""
    choices = {name: utils.default_process(name) for name in sorted(names)}
    found = {
        each: process.extractOne(utils.default_process(each), choices, scorer=fuzz.token_set_ratio, score_cutoff=_ALIKE)
        for each in unknown
    }
    return {each: near[2] for each, near in found.items() if near is not None}


async def _find_payees(company: Company) -> dict[str, list[Payee]]:
    """Return payees by their names, small letters, and by their ids, with those that cannot be paid."""
    features = await list_features(company.page.pool, company.customer_id)
    found: dict[str, list[Payee]] = {}
    for each in (await company.api.get(list_own_pockets, **{"filter[status]": "OPEN"}, limit=_CHOICES)).items:
        payee = Payee(each.pocket_name, {"type": "INTERNAL_REALLOCATION", "to_pocket_id": str(each.id)})
        for name in {each.pocket_name.lower(), str(each.id)}:
            found.setdefault(name, []).append(payee)
    for each in await _list_counterparties(company):
        if each.status == "UNLINKED":
            continue
        kind = "PEER_TO_PEER" if each.type == "on_us" else "WIRE"
        shown, account = (
            str(each.display_name or each.counterparty_name),
            str(each.account_number or each.wallet_address),
        )
        why = _WALLET if each.type == "crypto_wallet_address" else why_not_payable(each, features)
        at = {"rail": each.type, "account": account, "payee": str(each.id)}
        payee = Payee(shown, {"type": kind, "counterparty_id": str(each.id)}, at, why)
        names = {shown.lower(), str(each.counterparty_name).lower()}
        for name in {*names, *(f"{known} {account[-4:].lower()}" for known in names), str(each.id)}:
            found.setdefault(name, []).append(payee)
    return found


async def _list_counterparties(company: Company) -> list[Counterparty]:
    """Return the newest counterparties, as many as a batch can name."""
    items: list[Counterparty] = []
    cursor: str | None = None
    while len(items) < ROWS_MAX:
        page = await company.api.get(list_counterparties, limit=_CHOICES, cursor=cursor)
        items += page.items
        cursor = page.next_page
        if cursor is None:
            break
    return items


def _read_line(line: Line, columns: Sequence[str], payees: Mapping[str, Sequence[Payee]], origin: str) -> PastedRow:
    cells, why = cells_of(line, columns)
    wrong = {"to": why} if why else dict[str, str]()
    known = payees.get(cells.setdefault("to", "").lower(), ())
    named = [each for each in known if not each.why] or known[:1]
    if not wrong and (len(named) != 1 or named[0].why):
        wrong["to"] = _SEVERAL if len(named) > 1 else named[0].why if named else _UNKNOWN
    if len(named) == 1:
        cells |= named[0].shown
    cents = 0
    try:
        cents = cents_of("amount", cells.get("amount", ""))
    except InvalidInput as error:
        wrong["amount"] = f"The amount {error.errors[0].msg}."
    else:
        if not cents:
            wrong["amount"] = "The amount must be more than zero."
    if wrong:
        return PastedRow(line.number, cells, wrong, None)
    row = {
        **named[0].fields,
        "from_pocket_id": origin,
        "amount_usdc": cents,
        "description": cells.get("description") or None,
        "end_to_end_identification": cells.get("reference") or None,
        "idempotency_key": cells.get("key") or None,
    }
    return PastedRow(line.number, {**cells, "to": named[0].name, "amount": format_usd(cents)}, {}, row)
