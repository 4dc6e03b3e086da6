"""Transfers approved together: reviewed with their effect, confirmed by one factor, each decided on its own."""

from collections.abc import Collection
from typing import NamedTuple

from litestar import post

from billfold.accounts.counterparties.requests import render_counterparties
from billfold.accounts.counterparties.store import list_by_ids
from billfold.approvals.batch_preview import BATCH_MAX, preview_batch
from billfold.approvals.schemas import ShownTransferRequest
from billfold.approvals.transfer_requests_routes import (
    decide_transfer_request,
    get_transfer_request,
    list_transfer_requests,
)
from billfold.identity.users import store
from billfold.platform.errors import InvalidInput, NotFound, Refused, Unavailable
from billfold.platform.money import format_usd
from billfold.web.company.approvals.requests import may_decide, payee_of, pockets_of
from billfold.web.company.approvals.signing import SignedDecision, SignedList, confirm
from billfold.web.console.lists import names_of_pockets
from billfold.web.console.look_alikes import each_pair_once, find_alike
from billfold.web.console.team import Company, InCompany
from billfold.web.forms import ticked
from billfold.web.page_context import FormError, PageResponse, path_id, redirect

_LISTED = "request."


class Outcome(NamedTuple):
    """The result of one request of a list; `wrong` says why it was not approved. An unknown id has no request."""

    request: ShownTransferRequest | None
    wrong: str


@post("/companies/{customer_id:str}/approvals/together")
async def approve_together(company: InCompany) -> PageResponse:
    """Show the requests that are ticked with their effect, or approve those that the form lists, in its order."""
    form = company.page.form
    if form.get("step") != "sign":
        return await _review(company, ticked(form, "picks"))
    signed = SignedList(
        tuple(
            SignedDecision(path_id(name.removeprefix(_LISTED)), "APPROVED", content_hash)
            for name, content_hash in form.items()
            if name.startswith(_LISTED)
        )[:BATCH_MAX]
    )
    wrong = await confirm(company, signed) if signed.decisions else "Choose what to approve."
    if wrong is not None:
        return await _review(company, [str(each.request_id) for each in signed.decisions], wrong)
    outcomes = [await _approve(company, each, nth) for nth, each in enumerate(signed.decisions)]
    pockets = {key for each in outcomes if each.request is not None for key in pockets_of(each.request) if key}
    return company.render("approved_together", outcomes=outcomes, names=await names_of_pockets(company, pockets))


async def _approve(company: Company, signed: SignedDecision, nth: int) -> Outcome:
    """Approve one request of the list as if it were alone: what is refused stops no other."""
    body, names = {"status": signed.decision, "content_hash": signed.content_hash}, {"transfer_id": signed.request_id}
    try:
        key = f"{company.page.form_key}-{nth}"
        return Outcome(await company.api.send(decide_transfer_request, body, key=key, **names), "")
    except NotFound as wrong:
        return Outcome(None, wrong.detail)
    except (InvalidInput, Refused, Unavailable) as wrong:
        try:
            return Outcome(await company.api.get(get_transfer_request, **names), wrong.detail)
        except (NotFound, Refused, Unavailable):  # as when many were refused: the limit of requests counts these too
            return Outcome(None, f"{signed.request_id}: {wrong.detail}")


async def _review(company: Company, request_ids: Collection[str], wrong: FormError = "") -> PageResponse:
    """Show those of the requests that the visitor can still decide, the oldest first."""
    found = await company.api.get(list_transfer_requests, status="PENDING", limit=BATCH_MAX)
    chosen = [each for each in reversed(found.items) if str(each.id) in request_ids and may_decide(company, each)]
    if not chosen:
        return redirect(f"{company.path}/approvals")
    page = company.page
    effect = await preview_batch(
        page.server.bank, company.customer_id, [each.id for each in chosen], now=company.clock.now
    )
    keys = {key: each.transfer.counterparty_name for each in chosen if (key := payee_of(each))}
    rows = await list_by_ids(page.pool, company.customer_id, list(keys))
    alike = await find_alike(company, {name: key for key, name in keys.items() if name})
    return company.render(
        "approve_together",
        wrong=wrong,
        requests=chosen,
        total=format_usd(sum(each.transfer.amount.value for each in chosen)),
        payees=len({each.transfer.counterparty_id or pockets_of(each)[1] for each in chosen}),
        effect=effect,
        accounts={each.id: each for each in await render_counterparties(page.server.bank, company.customer_id, rows)},
        payee_of=payee_of,
        alike=alike,
        look_alikes=each_pair_once(alike),
        names=await names_of_pockets(company, [key for each in chosen for key in pockets_of(each) if key]),
        pockets={each.transfer.origin_pocket_id for each in chosen},
        factors=await store.get_factors(page.pool, page.user.user_id),
    )
