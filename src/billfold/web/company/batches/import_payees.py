"""Payees from a table: pasted or read from a CSV file, previewed with all mistakes and look-alikes, and added."""

from collections.abc import Mapping, Sequence
from typing import Any

from litestar import get, post

from billfold.accounts.customers.store import list_features
from billfold.batches.routes import create_batch, preview_batch
from billfold.batches.rows import Line
from billfold.payments.routing.store import list_bank_names
from billfold.payments.wires.routes import UNVERIFIED_WIRES_FEATURE
from billfold.platform.errors import InvalidInput, Refused
from billfold.web.company.batches.tables import (
    ROWS_CORRECTED,
    TABLE_BYTES_MAX,
    PastedRow,
    cells_of,
    corrected,
    ignored_in,
    read_table,
    sent_table,
    with_problems,
)
from billfold.web.company.counterparties import BODIES, KINDS, SCOPE
from billfold.web.console.look_alikes import each_pair_once, find_alike
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import fields_of
from billfold.web.page_context import FormError, PageResponse, redirect

_PATH = "/companies/{customer_id:str}/counterparties/import"
_HEADINGS = {
    "business_name": (
        *("name", "payee", "company", "vendor", "supplier", "business name", "counterparty", "payee name"),
        *("vendor name", "company name", "legal name", "beneficiary", "beneficiary name", "account holder"),
    ),
    "first_name": ("first name",),
    "last_name": ("last name",),
    "type": ("kind", "type", "rail", "payment method"),
    "routing_number": (
        *("routing number", "routing", "aba", "bic", "swift", "bank routing number", "aba number"),
        *("bank routing", "routing no", "aba routing number", "routing transit number", "swift code", "bic swift"),
    ),
    "account": (
        *("account number", "account", "iban", "wallet", "wallet address", "network address"),
        *("bank account number", "bank account", "account no", "acct number", "acct", "account number iban"),
    ),
    "account_type": ("account type",),
    "institution_name": ("bank", "bank name", "institution", "institution name"),
    "street_address": ("street", "address", "street address", "address 1", "address line 1", "street and number"),
    "street_address2": ("second line", "address 2", "address line 2"),
    "city": ("city",),
    "state": ("state", "province", "state province", "region"),
    "postal_code": ("postal code", "zip", "zip code", "zipcode", "postcode"),
    "country": ("country", "country code"),
    "chain": ("chain",),
    "display_name": ("shown as", "display name", "nickname"),
    "idempotency_key": ("key", "idempotency key", "external id"),
}
"""The columns are the fields of a row, but for that of an account, which depends on its kind."""
_ACCOUNTS = {"wire": "identifier", "international_wire": "identifier", "crypto_wallet_address": "wallet_address"}
_CELL_OF = dict.fromkeys(("account_number", "identifier", "wallet_address", "identifier_type"), "account")
_CELL_OF |= {"verification": "type", "identifier_code": "type"}
_KINDS = {word: kind for kind, each in KINDS.items() for word in (kind, kind.replace("_", " "), each.label.lower())}
_KINDS |= {
    "domestic": "wire",
    "international": "international_wire",
    "pocket": "on_us",
    "wallet": "crypto_wallet_address",
}


@get(_PATH)
async def show_import(company: InCompany) -> PageResponse:
    """Show the form for a table of payees."""
    company.require(SCOPE)
    return await _form(company, company.page.query)


@post(_PATH, body_bytes_max=TABLE_BYTES_MAX)
async def import_payees(company: InCompany) -> PageResponse:
    """Preview a table, add its payees, or go back to the form."""
    company.require(SCOPE)
    form, table = company.page.form, sent_table(company.page.form)
    if form.get("step") == "change":
        return await _form(company, form)
    try:
        as_corrected = corrected(table, form, _HEADINGS, {})
        columns, lines = read_table(as_corrected, _HEADINGS, required=("account",))
        pasted = [_read_line(each, columns, form) for each in lines]
        mode = form.get("mode") or "ATOMIC"
        body = {"kind": "COUNTERPARTIES", "mode": mode, "rows": [each.row for each in pasted if each.row]}
        if form.get("step") == "request" and as_corrected == table and all(each.row for each in pasted):
            made = await company.api.send(create_batch, body, key=company.page.form_key)
            return redirect(f"{company.path}/batches/{made.id}", done="batch-requested")
        found = await company.api.send(preview_batch, body) if body["rows"] else None
    except (InvalidInput, Refused) as wrong:
        return await _form(company, form, wrong)
    given = {name: form.get(name, "") for name in ("mode", "kind", "unverified")} | {"table": as_corrected}
    return await _preview(company, pasted, found, given)


async def _form(company: Company, given: Mapping[str, str], wrong: FormError = "") -> PageResponse:
    given = {name: given.get(name, "") for name in ("table", "mode", "kind", "unverified")}
    may = UNVERIFIED_WIRES_FEATURE in await list_features(company.page.pool, company.customer_id)
    return company.render("payees_import", wrong=wrong, given=given, kinds=KINDS, may_be_unverified=may)


def _read_line(line: Line, columns: Sequence[str], form: Mapping[str, str]) -> PastedRow:
    """Return a line as a row of a batch; the bank says what is wrong with it."""
    cells, wrong = cells_of(line, columns)
    cells |= _account_type_in(cells.get("type", ""))
    if wrong:
        return PastedRow(line.number, cells, {"business_name": wrong}, None)
    kind = _KINDS.get((cells.get("type") or form.get("kind") or "wire").lower())
    if kind is None:
        labels = ", ".join(each.label for each in KINDS.values())
        return PastedRow(line.number, cells, {"type": f"This is not a kind of account. They are {labels}."}, None)
    known = {*fields_of(BODIES[kind]), "idempotency_key"}
    row = {"country": "US"} if kind == "wire" else {}
    row |= {column: text for column, text in cells.items() if text and column in known}
    row |= {"type": kind, _ACCOUNTS.get(kind, "account_number"): cells.get("account", "")}
    for name in ("account_type", "chain", "country", "state"):
        if name in row and (name != "state" or len(row[name]) == len("NY")):
            row[name] = row[name].upper()
    if kind == "international_wire":
        row["identifier_code"] = "SWIFT_BIC"
    if ways := [way for way, _ in KINDS[kind].verifications]:
        row["verification"] = "unverified" if form.get("unverified") and "unverified" in ways else ways[0]
    return PastedRow(line.number, {**cells, "type": KINDS[kind].label}, {}, row)


def _account_type_in(kind: str) -> dict[str, str]:
    """Return the cells that a column "Type" fills if it means that of an account at a bank."""
    return {"type": "", "account_type": kind} if kind.lower() in {"checking", "savings"} else {}


async def _preview(
    company: Company,
    pasted: Sequence[PastedRow],
    found: Any,  # noqa: ANN401 - as the API shows it
    given: Mapping[str, str],
) -> PageResponse:
    rows = with_problems(pasted, found.problems if found else (), _CELL_OF, "business_name")
    names = {each.number: _name_in(each.cells) for each in rows}
    alike = await find_alike(company, dict.fromkeys(filter(None, names.values())))
    known = {
        n for n, name in names.items() if any(not each.differs and each.counterparty_id for each in alike.get(name, ()))
    }
    alike = {name: [each for each in others if each.differs] for name, others in alike.items()}
    wrong, ready = [each for each in rows if each.wrong], [each for each in rows if not each.wrong]
    return company.render(
        "payees_preview",
        rows=ready,
        wrong_rows=wrong,
        names=names,
        columns=[name for name in _HEADINGS if any(each.cells.get(name) or name in each.wrong for each in rows)],
        labels={name: each[0].capitalize() for name, each in _HEADINGS.items()},
        banks=await list_bank_names(company.page.pool, [each.cells.get("routing_number", "") for each in rows]),
        alike={number: alike[name] for number, name in names.items() if name in alike},
        look_alikes=each_pair_once(alike),
        known=known,
        ignored=ignored_in(rows),
        corrected_max=ROWS_CORRECTED,
        preview=found,
        may_request=bool(ready) and all(each.row for each in wrong) and not (wrong and given["mode"] != "INDEPENDENT"),
        given=given,
    )


def _name_in(cells: Mapping[str, str]) -> str:
    return cells.get("business_name") or f"{cells.get('first_name', '')} {cells.get('last_name', '')}".strip()
