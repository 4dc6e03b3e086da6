"""A table of payments: pasted or typed, previewed with what is wrong in its cells, corrected there, and requested."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from litestar import get, post

from billfold.accounts.pockets.overview import overview_of
from billfold.accounts.pockets.routes import get_pocket, list_own_pockets
from billfold.accounts.pockets.store import list_by_id
from billfold.batches.routes import create_batch, preview_batch
from billfold.batches.rows import Line
from billfold.http.raw_request import is_uuid
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.money import format_usd
from billfold.web.company.batches.matching import Payee, Payees, find_payees
from billfold.web.company.batches.tables import (
    ROWS_CORRECTED,
    TABLE_BYTES_MAX,
    Naming,
    PastedRow,
    cells_of,
    corrected,
    ignored_in,
    line_of,
    read_table,
    sent_table,
    with_problems,
)
from billfold.web.company.payees import list_choices_to_pay
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
    "counterparty_id": "to",
    "to_pocket_id": "to",
    "end_to_end_identification": "reference",
    "idempotency_key": "key",
}
"""Field of a row -> its column, where they differ."""
_WHOLE = "row"
"""Where a problem is that is in no column."""
_MISSING = "Name,Routing number,Account number,Street,City,State,Postal code"
_SEVERAL = "Several have this name: choose the account."
_UNKNOWN = "No payee or Pocket has this name."
_NOBODY = "A payee must be chosen."
_TYPED = ("to", "amount", "description")
_ROWS_TYPED, _ROWS_EMPTY = 30, 4
"""The most payments that are typed row by row, because a form has few fields; and the empty rows that are shown."""


@get("/companies/{customer_id:str}/batches/new")
async def show_new_batch(company: InCompany) -> PageResponse:
    """Show the form for payments that are typed, or for a table."""
    company.require(_SCOPE)
    return await _form(company, company.page.query)


@post("/companies/{customer_id:str}/batches/new", body_bytes_max=TABLE_BYTES_MAX)
async def add_batch(company: InCompany) -> PageResponse:
    """Preview a table with the corrections of its preview, request its transfers, or go back to the form."""
    company.require(_SCOPE)
    form = company.page.form
    table = _typed(form) if form.get("entry") == "rows" and "table" not in form else sent_table(form)
    if form.get("step") in {"change", "more"}:
        return await _form(company, form | {"table": table})
    try:
        if not is_uuid(form.get("origin", "")):
            raise InvalidInput.at("origin", msg="must be chosen")
        if "\n" not in table and form.get("entry") == "rows":
            raise InvalidInput.at("payments", msg="must have a payee and an amount in a row")
        payees = await find_payees(company)
        as_corrected = corrected(table, form, _HEADINGS, {"to": _naming(payees)})
        columns, lines = read_table(as_corrected, _HEADINGS, required=("to", "amount"))
        pasted = [_read_line(line, columns, payees, form["origin"]) for line in lines]
        mode = form.get("mode", "ATOMIC")
        body = {"kind": "TRANSFERS", "mode": mode, "rows": [each.row for each in pasted if each.row]}
        if form.get("step") == "request" and as_corrected == table and all(each.row for each in pasted):
            made = await company.api.send(create_batch, body, key=company.page.form_key)
            return redirect(f"{company.path}/batches/{made.id}", done="batch-requested")
        found = await company.api.send(preview_batch, body) if body["rows"] else None
    except (InvalidInput, Refused) as wrong:
        return await _form(company, form | {"table": table}, wrong)
    rows = with_problems(pasted, found.problems if found else (), _CELL_OF, _WHOLE)
    given = {name: form.get(name, "") for name in ("origin", "mode", "entry")} | {"table": as_corrected}
    return await _preview_page(company, rows, found, payees, given)


async def _preview_page(
    company: Company,
    rows: Sequence[PastedRow],
    found: Any,  # noqa: ANN401 - as the API shows it
    payees: Payees,
    given: Mapping[str, str],
) -> PageResponse:
    wrong, ready = [each for each in rows if each.wrong], [each for each in rows if not each.wrong]
    missing = list(dict.fromkeys(each.cells["to"] for each in wrong if each.wrong.get("to") == _UNKNOWN))
    missing = [each for each in missing if each]
    origin = await company.api.get(get_pocket, pocket_id=given["origin"])
    return company.render(
        "batch_preview",
        rows=ready,
        wrong_rows=wrong,
        columns=[name for name in _HEADINGS if any(each.cells.get(name) or name in each.wrong for each in rows)],
        choices=await _choices(payees, wrong),
        corrected_max=ROWS_CORRECTED,
        ignored=ignored_in(rows),
        missing=missing,
        missing_table="\n".join([_MISSING, *(f'"{each.replace(chr(34), chr(34) * 2)}"' for each in missing)]),
        total=format_usd(sum(each.row["amount_usdc"] for each in ready if each.row)),
        preview=found,
        effect=found.pockets[0].preview if found and found.pockets else None,
        origin=origin,
        may_request=bool(ready) and all(each.row for each in wrong) and not (wrong and given["mode"] != "INDEPENDENT"),
        given=given,
    )


async def _choices(payees: Payees, wrong: Sequence[PastedRow]) -> dict[int, list[tuple[str, Payee]]]:
    """Return whom rows may mean whose payee is not clear, by their lines, with the text that says so in a cell.

    Of rows with the same text that nobody is called, the first is corrected for all.
    """
    unclear: dict[int, str] = {}
    for each in wrong[:ROWS_CORRECTED]:
        if "to" in each.wrong and not (each.wrong["to"] == _UNKNOWN and each.cells["to"] in unclear.values()):
            unclear[each.number] = each.cells["to"]
    named = {text: [each for each in payees.called(text) if not each.why] for text in unclear.values()}
    near = await payees.like([text for text, meant in named.items() if text and not meant])
    found = {text: meant or near.get(text, []) for text, meant in named.items()}
    unclear = {number: text for number, text in unclear.items() if len(named[text]) != 1}  # else the line is wrong
    return {number: [(payees.words_for(each), each) for each in found[text]] for number, text in unclear.items()}


def _naming(payees: Payees) -> Naming:
    return Naming(partial(_words_of, payees), lambda text: not payees.called(text))


def _words_of(payees: Payees, text: str) -> str:
    """Return how the table calls a chosen payee; a text that means none, or several, as it is."""
    meant = payees.called(text)
    return payees.words_for(meant[0]) if len(meant) == 1 else text


def _typed(form: Mapping[str, str]) -> str:
    """Return the payments of a form as a table."""
    rows = [[form.get(f"row.{n}.{name}", "").strip() for name in _TYPED] for n in range(1, _ROWS_TYPED + 1)]
    return "\n".join(line_of(each) for each in ([name.capitalize() for name in _TYPED], *filter(any, rows)))


async def _form(company: Company, given: Mapping[str, str], wrong: FormError = "") -> PageResponse:
    """Return the form of a new batch; a table of few payments is shown as rows."""
    pockets = (await company.api.get(list_own_pockets, **{"filter[status]": "OPEN"}, limit=_CHOICES)).items
    bank = company.page.server.bank
    stored = await list_by_id(bank.pool, [(company.customer_id, each.id) for each in pockets])
    rows = _rows_of(given.get("table", "")) if given.get("entry") != "table" else None
    payees = [] if rows is None else await list_choices_to_pay(company)
    if rows:
        known = await find_payees(company)
        rows = [(_words_of(known, to), *further) for to, *further in rows]
    return company.render(
        "batch_new",
        wrong=wrong,
        pockets=pockets,
        payable={row.pocket_id: overview_of(bank, [row], company.clock.now).payable for row in stored},
        payees=payees,
        rows=None if rows is None else [*rows, *[("", "", "")] * min(_ROWS_EMPTY, _ROWS_TYPED - len(rows))],
        rows_max=_ROWS_TYPED,
        given={name: given.get(name, "") for name in ("origin", "mode", "table")},
    )


def _rows_of(table: str) -> list[tuple[str, ...]] | None:
    """Return the payments of a table as the rows of a form, None if they are too many, or have other cells."""
    if not table.strip():
        return []
    try:
        columns, lines = read_table(table, _HEADINGS, required=())
    except InvalidInput:
        return [] if table.strip() == ",".join(name.capitalize() for name in _TYPED) else None
    if len(lines) > _ROWS_TYPED or not {*columns} <= {*_TYPED} or any(each.wrong for each in lines):
        return None
    rows = [dict(zip(columns, line.cells, strict=False)) for line in lines]
    return [tuple(row.get(name, "") for name in _TYPED) for row in rows]


def _read_line(line: Line, columns: Sequence[str], payees: Payees, origin: str) -> PastedRow:
    cells, why = cells_of(line, columns)
    wrong = {"to": why} if why else dict[str, str]()
    named = payees.called(cells.setdefault("to", ""))
    if not wrong and (len(named) != 1 or named[0].why):
        wrong["to"] = _SEVERAL if len(named) > 1 else named[0].why if named else _UNKNOWN if cells["to"] else _NOBODY
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
