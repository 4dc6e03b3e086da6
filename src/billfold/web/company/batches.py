"""Batches: a table pasted from a spreadsheet, previewed with what is wrong in its cells, requested and decided."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from litestar import get, post

from billfold.accounts.counterparties.routes import list_counterparties
from billfold.accounts.counterparties.schemas import Counterparty
from billfold.accounts.pockets.routes import list_own_pockets
from billfold.batches.preview import preview_waiting
from billfold.batches.routes import (
    cancel_batch,
    create_batch,
    decide_batch,
    get_batch,
    list_batch_rows,
    list_batches,
    preview_batch,
)
from billfold.batches.rows import Line, read_lines
from billfold.batches.types import ROWS_MAX
from billfold.http.raw_request import is_uuid
from billfold.identity.users import store
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.money import format_usd
from billfold.web.company.approvals.requests import may_decide_batch
from billfold.web.company.approvals.signing import SignedDecision, confirm
from billfold.web.company.move_money import PAYABLE
from billfold.web.console.lists import names_of_pockets, read_listing
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import cents_of
from billfold.web.page_context import FormError, PageResponse, path_id, redirect

_SCOPE = "transfers.write"
_NO_SUCH = "There is no such batch."
_PAGE, _CHOICES = 30, 100
TABLE_BYTES_MAX = 512 * 1024
"""The most bytes of a form with a pasted table."""
_HEADINGS = {
    "to": ("to", "payee", "recipient", "counterparty", "name", "pocket", "counterparty id"),
    "amount": ("amount", "amount $", "amount usd", "usd", "sum"),
    "description": ("description", "memo", "note", "text"),
    "reference": ("reference", "invoice", "end to end identification"),
    "key": ("key", "idempotency key", "external id"),
}
"""Column -> the headings by which it is recognized, in small letters and without punctuation."""
_COLUMN_OF = {heading: column for column, headings in _HEADINGS.items() for heading in headings}
_CELL_OF = {
    "amount_usdc": "amount",
    "from_pocket_id": "to",
    "counterparty_id": "to",
    "to_pocket_id": "to",
    "end_to_end_identification": "reference",
    "idempotency_key": "key",
}
"""Field of a row -> its column, where they differ."""


class Payee(NamedTuple):
    """A payee that a cell can name: the fields of a row that it gives, and how it is shown."""

    name: str
    fields: Mapping[str, str]


class PastedRow(NamedTuple):
    """A line of the table: its cells and what is wrong with them by column, and the row if nothing is."""

    number: int
    cells: Mapping[str, str]
    wrong: Mapping[str, str]
    row: Mapping[str, Any] | None

    def with_problems(self, problems: Mapping[str, str]) -> "PastedRow":
        """Return it with the problems that the bank found."""
        return self._replace(wrong={**self.wrong, **problems})


@get("/companies/{customer_id:str}/batches")
async def show_batches(company: InCompany) -> PageResponse:
    """Show the batches, the newest first."""
    return company.render("batches", listing=await read_listing(company, list_batches, {}, limit=_PAGE))


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
    sent = [place for place, each in enumerate(pasted) if each.row]
    rows = list(pasted)
    for each in found.problems if found else ():
        place = sent[each.number - 1]
        problems = {_CELL_OF.get(it.field or "", it.field or "to"): it.detail for it in each.problems}
        rows[place] = rows[place].with_problems(problems)
    wrong = sum(bool(each.wrong) for each in rows)
    return company.render(
        "batch_preview",
        rows=rows,
        columns=[name for name in _HEADINGS if any(each.cells.get(name) for each in rows)],
        wrong_rows=wrong,
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
    try:
        header, *lines = read_lines(form.get("table", ""))
    except InvalidInput as wrong:
        raise InvalidInput.at("table", msg=wrong.errors[0].msg) from None
    columns = _columns_in(header)
    if not lines:
        raise InvalidInput.at("table", msg="must have a line below its headings")
    payees = await _find_payees(company)
    return [_read_line(line, columns, payees, form["origin"]) for line in lines]


def _columns_in(header: Line) -> list[str]:
    """Return the columns that headings name. Raises InvalidInput."""
    found = []
    for nth, heading in enumerate(header.cells, 1):
        words = "".join(each if each.isalnum() or each == "$" else " " for each in heading.lower()).split()
        column = _COLUMN_OF.get(" ".join(words))
        if column is None or column in found:
            why = (
                "is named twice"
                if column
                else "is not recognized. Headings are To, Amount, Description, Reference, Key"
            )
            raise InvalidInput.at("table", msg=f"has the heading {heading[:40]!r} in column {nth}, which {why}")
        found.append(column)
    if header.wrong or not {"to", "amount"} <= {*found}:
        raise InvalidInput.at("table", msg="must begin with headings, among them To and Amount")
    return found


async def _find_payees(company: Company) -> dict[str, list[Payee]]:
    """Return what can be paid by its name, small letters, and by its id."""
    found: dict[str, list[Payee]] = {}
    for each in (await company.api.get(list_own_pockets, **{"filter[status]": "OPEN"}, limit=_CHOICES)).items:
        payee = Payee(each.pocket_name, {"type": "INTERNAL_REALLOCATION", "to_pocket_id": str(each.id)})
        for name in {each.pocket_name.lower(), str(each.id)}:
            found.setdefault(name, []).append(payee)
    for each in await _list_counterparties(company):
        if each.type in {"on_us", "wire", "international_wire"} and each.type in PAYABLE:
            kind = "PEER_TO_PEER" if each.type == "on_us" else "WIRE"
            shown = str(each.display_name or each.counterparty_name)
            payee = Payee(shown, {"type": kind, "counterparty_id": str(each.id)})
            for name in {shown.lower(), str(each.counterparty_name).lower(), str(each.id)}:
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
    cells = dict(zip(columns, line.cells, strict=False))
    wrong: dict[str, str] = {}
    if line.wrong or len(line.cells) > len(columns):
        wrong["to"] = line.wrong or f"There are {len(line.cells)} cells in this line, and {len(columns)} headings."
    named = payees.get(cells.get("to", "").lower(), ())
    if not wrong and len(named) != 1:
        wrong["to"] = "Several have this name: write the id." if named else "No verified payee or Pocket has this name."
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


@get("/companies/{customer_id:str}/batches/{batch_id:str}")
async def show_batch(company: InCompany, batch_id: str) -> PageResponse:
    """Show a batch with its rows."""
    return await _page(company, path_id(batch_id, _NO_SUCH))


@post("/companies/{customer_id:str}/batches/{batch_id:str}")
async def decide(company: InCompany, batch_id: str) -> PageResponse:
    """Approve or deny a batch."""
    key, form = path_id(batch_id, _NO_SUCH), company.page.form
    await company.api.get(get_batch, batch_id=key)
    decision = SignedDecision(key, form.get("decision", ""), form.get("content_hash", ""))
    done = {"APPROVED": "request-approved", "DENIED": "request-denied"}.get(decision.decision)
    if done is None:
        return await _page(company, key, "Choose to approve or to deny.")
    wrong = await confirm(company, decision)
    if wrong is not None:
        return await _page(company, key, wrong)
    body = {
        "status": decision.decision,
        "comment": form.get("comment", "").strip() or None,
        "content_hash": decision.content_hash,
    }
    try:
        await company.api.send(decide_batch, body, key=company.page.form_key, batch_id=key)
    except (InvalidInput, Refused) as refused:
        return await _page(company, key, refused)
    return redirect(f"{company.path}/batches/{key}", done=done)


@post("/companies/{customer_id:str}/batches/{batch_id:str}/cancel")
async def cancel(company: InCompany, batch_id: str) -> PageResponse:
    """Cancel a pending batch."""
    key = path_id(batch_id, _NO_SUCH)
    try:
        await company.api.send(cancel_batch, key=company.page.form_key, batch_id=key)
    except Refused as wrong:
        return await _page(company, key, wrong)
    return redirect(f"{company.path}/batches/{key}", done="transfer-cancelled")


async def _page(company: Company, key: UUID, wrong: FormError = "") -> PageResponse:
    found = await company.api.get(get_batch, batch_id=key)
    cursor = company.page.query.get("cursor")
    shown = await company.api.get(list_batch_rows, batch_id=key, limit=_CHOICES, cursor=cursor)
    pockets = {each for row in shown.items for each in (row.from_pocket_id, row.to_pocket_id) if each is not None}
    own, may_decide = company.own.member_id, may_decide_batch(company, found)
    asked_by = found.approval.requested_by.member_id
    effect = await preview_waiting(company.page.server.bank, company.customer_id, key) if may_decide else None
    return company.render(
        "batch",
        wrong=wrong,
        batch=found,
        shown=shown,
        names=await names_of_pockets(company, pockets),
        may_decide=may_decide,
        effect=effect,
        paying=[(each.pocket_id, each) for each in effect.pockets] if effect else [],
        is_own=asked_by == own,
        may_cancel=found.status == "PENDING"
        and company.may(_SCOPE)
        and (asked_by == own or company.own.role == "ADMIN"),
        comment=company.page.form.get("comment", ""),
        factors=await store.get_factors(company.page.pool, company.page.user.user_id),
    )
