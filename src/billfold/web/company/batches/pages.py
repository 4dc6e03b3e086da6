"""Batches: listed, shown with their progress and results, decided, cancelled."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final, get_args
from uuid import UUID

from litestar import Response, get, post

from billfold.accounts.counterparties.requests import render_counterparties
from billfold.accounts.counterparties.store import list_by_ids
from billfold.batches.members import needs_of
from billfold.batches.preview import preview_waiting
from billfold.batches.routes import (
    cancel_batch,
    decide_batch,
    get_batch,
    list_batch_rows,
    list_batches,
    list_first_payees,
    list_pending_batches,
)
from billfold.batches.rules import BATCH_REFUSED
from billfold.batches.schemas import ShownBatch, ShownBatchRow
from billfold.batches.types import BatchStatus, RowState
from billfold.bills.rules.strategies import STRATEGIES
from billfold.identity.users import store
from billfold.pages.theme import page_headers
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.text import lines_of
from billfold.web.company.approvals.requests import may_decide_batch
from billfold.web.company.approvals.signing import SignedDecision, confirm
from billfold.web.company.batches.tables import line_of
from billfold.web.console.lists import names_of_pockets, read_listing
from billfold.web.console.look_alikes import each_pair_once, find_alike
from billfold.web.console.team import Company, InCompany
from billfold.web.page_context import FormError, PageResponse, path_id, redirect

_SCOPE = "transfers.write"
_NO_SUCH = "There is no such batch."
_PAGE, _ROWS, _FAILED = 30, 100, 25
_FILTERS = {"status": "status[]", "kind": "kind[]", "from": "time_created_from", "to": "time_created_to"}
_COLUMNS: Final = ("row", "to", "type", "amount_usd", "state", "problem", "description", "reference", "key", "id")


@get("/companies/{customer_id:str}/batches")
async def show_batches(company: InCompany) -> PageResponse:
    """Show the batches, the newest first."""
    listing = await read_listing(company, list_batches, _FILTERS, limit=_PAGE)
    bank = company.page.server.bank
    return company.render(
        "batches",
        listing=listing,
        wrong=listing.wrong,
        statuses=get_args(BatchStatus),
        first=await list_first_payees(bank, company.customer_id, listing.rows.items),
        waiting=len(await list_pending_batches(bank, company.customer_id, company.clock.now)),
    )


@get("/companies/{customer_id:str}/batches/{batch_id:str}")
async def show_batch(company: InCompany, batch_id: str) -> PageResponse:
    """Show a batch with its rows."""
    return await _page(company, path_id(batch_id, _NO_SUCH))


@post("/companies/{customer_id:str}/batches/{batch_id:str}")
async def decide(company: InCompany, batch_id: str) -> PageResponse:
    """Approve or deny a batch."""
    key, form = path_id(batch_id, _NO_SUCH), company.page.form
    found = await company.api.get(get_batch, batch_id=key)
    company.require(needs_of(found.kind))
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
    company.require(_SCOPE)
    key = path_id(batch_id, _NO_SUCH)
    try:
        await company.api.send(cancel_batch, key=company.page.form_key, batch_id=key)
    except Refused as wrong:
        return await _page(company, key, wrong)
    return redirect(f"{company.path}/batches/{key}", done="batch-cancelled")


async def _page(company: Company, key: UUID, wrong: FormError = "") -> PageResponse:
    found = await company.api.get(get_batch, batch_id=key)
    cursor, state = company.page.query.get("cursor"), company.page.query.get("state", "")
    states = {"state": state} if state in get_args(RowState) else {}
    shown = await company.api.get(list_batch_rows, batch_id=key, limit=_ROWS, cursor=cursor, **states)
    failed = await company.api.get(list_batch_rows, batch_id=key, limit=_FAILED, state="FAILED")
    own, asked_by = company.own.member_id, found.approval.requested_by.member_id
    may_decide, of_transfers = may_decide_batch(company, found), found.kind == "TRANSFERS"
    effect = None
    if may_decide and of_transfers:
        effect = await preview_waiting(company.page.server.bank, company.customer_id, key)
    causes = await _list_causes(company, found, failed.items)
    listed = [*shown.items, *failed.items, *causes]
    ids = sorted({each.counterparty_id for each in listed if each.counterparty_id and of_transfers})
    rows = await list_by_ids(company.page.pool, company.customer_id, ids)
    payees = await render_counterparties(company.page.server.bank, company.customer_id, rows)
    return company.render(
        "batch",
        wrong=wrong,
        batch=found,
        shown=shown,
        failed=failed.items,
        causes=causes,
        again=_table_of(failed.items) if of_transfers else "",
        state=states.get("state", ""),
        names=await names_of_pockets(company, _pockets_in(listed)),
        may_decide=may_decide,
        effect=effect,
        accounts={each.id: each for each in payees},
        strategies={each.id: f"{each.maturity_weeks}-week bills" for each in STRATEGIES},
        paying=[(each.pocket_id, each) for each in effect.pockets] if effect else [],
        alike=(alike := await find_alike(company, _payees_in(shown.items)) if may_decide else {}),
        look_alikes=each_pair_once(alike),
        is_own=asked_by == own,
        may_cancel=found.status == "PENDING"
        and company.may(_SCOPE)
        and (asked_by == own or company.own.role == "ADMIN"),
        comment=company.page.form.get("comment", ""),
        factors=await store.get_factors(company.page.pool, company.page.user.user_id),
    )


async def _list_causes(company: Company, batch: ShownBatch, failed: Sequence[ShownBatchRow]) -> Sequence[ShownBatchRow]:
    """Return the rows that failed by themselves: of all or none, the others failed because of these."""
    if batch.mode != "ATOMIC" or not failed:
        return failed
    cursor: str | None = None
    causes: list[ShownBatchRow] = []
    while len(causes) < _FAILED:
        page = await company.api.get(list_batch_rows, batch_id=batch.id, limit=_ROWS, cursor=cursor, state="FAILED")
        causes += [each for each in page.items if each.problem and each.problem.code != BATCH_REFUSED]
        if (cursor := page.next_page) is None:
            break
    return causes[:_FAILED]


def _pockets_in(rows: Sequence[ShownBatchRow]) -> set[UUID]:
    return {each for row in rows for each in (row.from_pocket_id, row.to_pocket_id) if each is not None}


def _table_of(rows: Sequence[ShownBatchRow]) -> str:
    """Return payments as a table by which they are paid again; rows that could not be read are not in it."""
    lines = [
        (str(to), f"{Decimal(each.amount.value) / 100:.2f}", each.description or "")
        for each in rows
        if (to := each.counterparty_id or each.to_pocket_id) and each.amount
    ]
    return "\n".join(map(line_of, [("To", "Amount", "Description"), *lines])) if lines else ""


def _payees_in(rows: Sequence[ShownBatchRow]) -> dict[str, UUID | None]:
    """Return the names of the counterparties that rows pay or add, with their ids if they exist."""
    return {each.counterparty_name: each.counterparty_id for each in rows if each.counterparty_name}


@get("/companies/{customer_id:str}/batches/{batch_id:str}/results.csv")
async def download_results(company: InCompany, batch_id: str) -> PageResponse:
    """Download the rows of a batch with their results."""
    key, cursor = path_id(batch_id, _NO_SUCH), None
    lines: list[tuple[object, ...]] = [_COLUMNS]
    while True:
        page = await company.api.get(list_batch_rows, batch_id=key, limit=_ROWS, cursor=cursor)
        pockets = await names_of_pockets(company, _pockets_in(page.items))
        lines += [_cells(each, pockets) for each in page.items]
        if (cursor := page.next_page) is None:
            break
    headers = {"content-disposition": f'attachment; filename="batch-{str(key)[:8]}.csv"', **page_headers()}
    return Response(lines_of(lines), media_type="text/csv; charset=utf-8", headers=headers)


def _cells(row: ShownBatchRow, pockets: Mapping[str, str]) -> tuple[object, ...]:
    opened = row.pocket and row.pocket.pocket_name
    to = row.counterparty_name or opened or pockets.get(str(row.to_pocket_id))
    problem = row.problem and row.problem.detail
    amount = row.amount and Decimal(row.amount.value) / 100
    made = row.transfer_id or row.counterparty_id or row.pocket_id
    texts = (row.description, row.end_to_end_identification, row.idempotency_key)
    return (row.number, to, row.type or row.counterparty_type, amount, row.state, problem, *texts, made)
