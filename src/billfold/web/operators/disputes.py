"""Disputes of card payments: by state with their deadlines, and one with what can be decided about it."""

from typing import NamedTuple

import msgspec
from litestar import get, post

from billfold.accounts.pockets.store import list_page_by_offset
from billfold.documents.store import list_documents, open_names
from billfold.dual_control.store import list_about
from billfold.payments.cards.authorizations.commands import Merchant
from billfold.payments.cards.authorizations.disputes import decisions, store
from billfold.payments.cards.authorizations.disputes.commands import OPEN, DisputeRow, DisputeStatus
from billfold.payments.cards.authorizations.store import find_payment_authorization, get_payment
from billfold.payments.cards.store import get_card
from billfold.platform.errors import InvalidInput, NotFound
from billfold.platform.money import format_usd
from billfold.servicing.lists import names_of
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageResponse, path_id, redirect, shown_again

_SHOWN_MAX, _PROPOSALS_MAX = 100, 20
_ONE = "/bank/disputes/{dispute_id:str}"


class Choice(NamedTuple):
    """A decision that can be proposed, and what it does with money."""

    status: DisputeStatus
    label: str
    effect: str


@get("/bank/disputes")
async def show_disputes(operator: InBank) -> PageResponse:
    """Show the disputes of a state: those that wait for a decision by their deadlines, ended ones from the last."""
    pool, wanted = operator.bank.pool, operator.page.query.get("status", "")
    status = DisputeStatus(wanted) if wanted in set(DisputeStatus) else None
    is_ended = wanted == "ended" or (status is not None and status not in OPEN)
    listed = store.list_ended if is_ended else store.list_undecided
    rows = await listed(pool, limit=_SHOWN_MAX, status=status)
    return operator.render(
        "bank_disputes",
        rows=rows,
        names=await names_of(pool, {each.customer_id for each in rows}),
        chosen=status or ("ended" if is_ended else ""),
        is_ended=is_ended,
        shown_max=_SHOWN_MAX,
    )


async def _show(operator: BankPage, dispute_id: str, wrong: FormError = "") -> PageResponse:
    bank = operator.bank
    row = await decisions.find_dispute(bank, path_id(dispute_id))
    owner = row.customer_id
    async with bank.pool.acquire() as conn:
        purchase = await get_payment(conn, owner, row.record_id)
        authorization = await find_payment_authorization(conn, owner, row.authorization_id)
        card = await get_card(conn, owner, row.card_id)
        documents = await list_documents(conn, owner, row.evidence_ids)
        _, pockets = await list_page_by_offset(
            conn, owner, statuses=None, pocket_ids=[row.pocket_id], offset=0, limit=1
        )
        proposals = await list_about(conn, owner, row.dispute_id, limit=_PROPOSALS_MAX)
        names = await names_of(conn, [owner])
    return operator.render(
        "bank_dispute",
        wrong=wrong,
        row=row,
        customer=names[owner],
        purchase=purchase,
        merchant=msgspec.json.decode(purchase.merchant, type=Merchant),
        authorization=authorization,
        card=card,
        pocket=pockets[0],
        documents=await open_names(bank.pool, bank, list(documents.values())),
        proposals=proposals,
        choices=_choices(row, pockets[0].name),
        given=operator.page.form if wrong else {},
    )


@get(_ONE)
async def show_dispute(operator: InBank, dispute_id: str) -> PageResponse:
    """Show a dispute: its payment, its documents, and what is decided next."""
    return await _show(operator, dispute_id)


@post(_ONE, opt=RECENT_AUTHENTICATION)
@shown_again(_show, NotFound)
async def decide_dispute(operator: InBank, dispute_id: str) -> PageResponse:
    """Propose a decision; another operator confirms it."""
    form, wanted = operator.page.form, path_id(dispute_id)
    if form.get("decision") not in {each.status for each in _LABELS}:
        raise InvalidInput.at("decision", msg="must be chosen")
    status, reason = DisputeStatus(form["decision"]), form.get("reason", "")
    await decisions.propose_decision(operator.bank, wanted, status, reason=reason, by=operator.by)
    return redirect(f"/bank/disputes/{wanted}", done="freeze-proposed")


_LABELS = (
    Choice(
        DisputeStatus.PROVISIONALLY_CREDITED,
        "Credit provisionally",
        "{left} is credited to {pocket} now, and taken back if the merchant proves to be right.",
    ),
    Choice(
        DisputeStatus.WON,
        "The cardholder is right",
        "{left} is credited to {pocket}. {all} is final then: the bank bears it until a chargeback repays it.",
    ),
    Choice(
        DisputeStatus.LOST,
        "The merchant is right",
        "{advanced} is taken back from {pocket}, even if it has been spent.",
    ),
)


def _choices(row: DisputeRow, pocket: str) -> list[Choice]:
    """Return what can be proposed about a dispute, with the amounts that move."""
    if row.status not in OPEN:
        return []
    left = row.amount - row.recovered - row.advanced
    amounts = {"left": left, "advanced": row.advanced, "all": left + row.advanced}
    told = {name: format_usd(cents) for name, cents in amounts.items()} | {"pocket": pocket}
    first = 0 if row.status == DisputeStatus.OPENED else 1
    found = [each._replace(effect=each.effect.format_map(told)) for each in _LABELS[first:]]
    if not row.advanced:
        found[-1] = found[-1]._replace(effect="Nothing is credited, and no money moves.")
    return found
