"""Proposals under dual control: what one operator proposes, what it changes, and how another confirms it."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from litestar import get, post

from billfold.dual_control import decisions
from billfold.dual_control.effects import Effect, list_effects
from billfold.dual_control.store import (
    PROPOSALS,
    FreezeProposal,
    FreezeSubject,
    find_freeze,
    get_proposal,
    name_subjects,
)
from billfold.http.parameters import ListQuery
from billfold.http.raw_request import is_uuid
from billfold.platform.database.paging import Page
from billfold.platform.errors import InvalidInput, NotFound, Refused
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
_CAUSES: Mapping[str, tuple[str, str]] = {
    "AmendExecution": ("Execution", "/bank/desk/executions/{about}"),
    "AssignFromSuspense": ("Item in suspense", "/bank/suspense/{about}"),
    "CloseBreak": ("Break", "/bank/breaks/{about}"),
    "CloseRailFile": ("File", "/bank/rails/{about}"),
    "DecideDispute": ("Dispute", "/bank/disputes/{about}"),
    "HoldInSuspense": ("Break", "/bank/breaks/{about}"),
    "ReleaseWire": ("Wire", "/bank/customers/{owner}/wire/{about}"),
    "ReturnFromSuspense": ("Item in suspense", "/bank/suspense/{about}"),
    "WriteOffFromSuspense": ("Item in suspense", "/bank/suspense/{about}"),
}
"""What the movements of these commands are about, and where it is shown."""


async def _show(operator: BankPage, wrong: FormError = "") -> PageResponse:
    bank, wanted = operator.bank, ListQuery(cursor=operator.page.query.get("cursor", ""), limit=_PAGE)
    try:
        page = await wanted.read(bank, PROPOSALS, bank.own_id, scope="freezes")
    except InvalidInput:
        page, wrong = Page([]), "The list has changed since. Begin with its first page."
    given = operator.page.form if wrong else operator.page.query
    names, subject = await _names(operator, page.items), await _subject(operator, given)
    return operator.render(
        "bank_freezes",
        wrong=wrong,
        rows=page,
        waiting=[each for each in page.items if each.is_open],
        ended={each.proposal_id: await find_freeze(bank.pool, each) for each in page.items if each.is_ending},
        decided=[each for each in page.items if not each.is_open],
        titles={each.proposal_id: _title(each, names) for each in page.items},
        names=names,
        subjects=[each.value for each in FreezeSubject],
        subject=subject,
        given=given,
    )


async def _names(operator: BankPage, rows: Iterable[FreezeProposal]) -> dict[UUID, str]:
    named = list(rows)
    return await name_subjects(
        operator.bank.pool, {each.owner_id for each in named}, {each.subject_id for each in named if each.subject}
    )


def _title(row: FreezeProposal, names: Mapping[UUID, str]) -> str:
    """Return what is proposed, without the ids that the audit log has."""
    if row.subject is None:
        return row.words
    what = "Pocket" if row.subject == FreezeSubject.POCKET else row.subject.lower()
    of = "" if row.subject == FreezeSubject.CUSTOMER else f" of {names[row.owner_id]}"
    return f"{'Freeze' if row.freezes else 'Unfreeze'} the {what} {names.get(row.subject_id, row.subject_id)}{of}"


async def _subject(operator: BankPage, given: Mapping[str, str]) -> str:
    """Return the name of what another page wants to be frozen, or nothing."""
    kind, wanted = given.get("subject", ""), given.get("subject_id", "").strip()
    if kind not in set(FreezeSubject) or not is_uuid(wanted):
        return ""
    found = await operator.bank.directory.find(kind.lower(), UUID(wanted))
    if found is None:
        return ""
    names = await name_subjects(operator.bank.pool, [found.customer_id], [UUID(wanted)])
    what = "Pocket" if kind == FreezeSubject.POCKET else kind.lower()
    of = "" if kind == FreezeSubject.CUSTOMER else f" of {names[found.customer_id]}"
    return f"{what} {names[UUID(wanted)]}{of}"


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


_ONE = "/bank/freezes/{proposal_id:str}"


async def _show_proposal(operator: BankPage, proposal_id: str, wrong: FormError = "") -> PageResponse:
    bank = operator.bank
    row = await get_proposal(bank.pool, path_id(proposal_id))
    names, effects, refusal = await _names(operator, [row]), list[Effect](), ""
    if row.is_open and row.movement is not None:
        try:
            effects = await list_effects(bank, row)
        except (NotFound, Refused) as refused:
            refusal = str(refused)
    label, to = _CAUSES.get(row.read_movement().kind, ("", "")) if row.movement is not None else ("", "")
    return operator.render(
        "bank_proposal",
        wrong=wrong,
        row=row,
        title=_title(row, names),
        owner=names.get(row.owner_id, ""),
        is_of_bank=row.owner_id == operator.customer_id,
        effects=effects,
        refusal=refusal,
        freeze=await find_freeze(bank.pool, row) if row.is_ending else None,
        cause=(label, to.format(about=row.subject_id, owner=row.owner_id)) if to else None,
    )


@get(_ONE)
async def show_proposal(operator: InBank, proposal_id: str) -> PageResponse:
    """Show what a proposal changes, who made it and why."""
    return await _show_proposal(operator, proposal_id)


@post(_ONE, opt=RECENT_AUTHENTICATION)
@shown_again(_show_proposal)
async def decide_proposal(operator: InBank, proposal_id: str) -> PageResponse:
    """Confirm another operator's proposal, or withdraw it."""
    wanted, verb = path_id(proposal_id), operator.page.form.get("decision")
    decide = {"confirm": decisions.confirm, "withdraw": decisions.withdraw}.get(verb or "")
    if decide is None:
        raise InvalidInput.at("decision", msg="must be chosen")
    await decide(operator.bank, wanted, by=operator.by)
    return redirect(f"/bank/freezes/{wanted}", done=f"freeze-{'applied' if verb == 'confirm' else 'withdrawn'}")
