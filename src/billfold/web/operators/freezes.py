"""Freezes under dual control: proposed by one operator, confirmed by another."""

from uuid import UUID

from litestar import get, post

from billfold.dual_control import decisions
from billfold.dual_control.store import PROPOSALS, FreezeSubject, find_freeze
from billfold.http.parameters import ListQuery
from billfold.http.raw_request import is_uuid
from billfold.ledger.scheduler import bank_customer_id
from billfold.platform.database.paging import Page
from billfold.platform.errors import InvalidInput, NotFound
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import (
    RECENT_AUTHENTICATION,
    FormError,
    PageResponse,
    path_id,
    redirect,
    shown_again,
)

_PAGE = 50


async def _show(operator: BankPage, wrong: FormError = "") -> PageResponse:
    bank, wanted = operator.bank, ListQuery(cursor=operator.page.query.get("cursor", ""), limit=_PAGE)
    try:
        page = await wanted.read(bank, PROPOSALS, bank_customer_id(bank.seed), scope="freezes")
    except InvalidInput:
        page, wrong = Page([]), "The list has changed since. Begin with its first page."
    return operator.render(
        "bank_freezes",
        wrong=wrong,
        rows=page,
        waiting=[each for each in page.items if each.is_open],
        ended={each.proposal_id: await find_freeze(bank.pool, each) for each in page.items if each.is_ending},
        past=[each for each in page.items if not each.is_open],
        subjects=[each.value for each in FreezeSubject],
        given=operator.page.form if wrong else operator.page.query,
    )


@get("/bank/freezes")
async def show_freezes(operator: InBank) -> PageResponse:
    """Show proposals and completed freezes."""
    return await _show(operator)


@post("/bank/freezes", opt=RECENT_AUTHENTICATION)
@shown_again(_show, NotFound)
async def propose_freeze(operator: InBank) -> PageResponse:
    """Propose a freeze, or its end."""
    form = operator.page.form
    subject_id = form.get("subject_id", "").strip()
    if form.get("subject") not in set(FreezeSubject):
        raise InvalidInput.at("subject", msg="must be chosen")
    if not is_uuid(subject_id):
        raise InvalidInput.at("subject_id", msg="must be an id")
    await decisions.propose(
        operator.bank,
        FreezeSubject(form["subject"]),
        UUID(subject_id),
        freezes=form.get("change") != "lift",
        reason=form.get("reason", ""),
        by=operator.by,
    )
    return redirect("/bank/freezes", done="freeze-proposed")


@post("/bank/freezes/{proposal_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_show)
async def decide_freeze(operator: InBank, proposal_id: str) -> PageResponse:
    """Confirm another operator's proposal, or withdraw it."""
    wanted, verb = path_id(proposal_id), operator.page.form.get("decision")
    decide = {"confirm": decisions.confirm, "withdraw": decisions.withdraw}.get(verb or "")
    if decide is None:
        raise InvalidInput.at("decision", msg="must be chosen")
    await decide(operator.bank, wanted, by=operator.by)
    return redirect("/bank/freezes", done=f"freeze-{'applied' if verb == 'confirm' else 'withdrawn'}")
