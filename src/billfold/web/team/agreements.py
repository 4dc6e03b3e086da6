"""The current agreements, and the form by which an administrator accepts them for a company."""

from collections.abc import Collection
from datetime import date

from litestar import get, post

from billfold.accounts.agreements.rules import AcceptAgreements, AcceptedBy, Consent
from billfold.ledger.directory import find_customer
from billfold.onboarding.agreements import store
from billfold.onboarding.agreements.routes import Agreement, AgreementDocument, read_agreement
from billfold.platform import ids
from billfold.platform.dates import et_date
from billfold.team.administrator import Administrator
from billfold.web.page_context import HOME, FormError, PageContext, PageResponse, redirect, shown_again
from billfold.web.team.members import ByAdministrator

_AGENT_MAX = 500
_PATH = "/companies/{customer_id:str}/agreements"


async def _show(page: PageContext, by: Administrator, wrong: FormError = "") -> PageResponse:
    bank = page.server.bank
    customer = await find_customer(page.pool, by.customer_id)
    accepted = customer.agreement_version if customer else None
    current = await read_agreement(bank, by.now)
    before = {} if accepted is None else await store.find_documents(page.pool, accepted)
    now = await store.find_documents(page.pool, current.version)
    terms = next(each for each in bank.terms.agreements.published if each.version == current.version)
    today = et_date(by.now)
    return page.render(
        "agreements",
        wrong=wrong,
        by=by,
        agreement=current,
        accepted=accepted,
        is_due=(accepted or "") < current.version,
        groups=_grouped(current, {kind for kind, text in now.items() if before.get(kind) == text}),
        released=_written(current.release_date),
        required_by=_written(terms.required_by) if terms.required_by else "",
        is_required=terms.required_by is not None and terms.required_by <= today,
        next=page.next_path,
    )


@get(_PATH)
async def show_agreements(page: PageContext, by: ByAdministrator) -> PageResponse:
    """Show the current agreements, the changes since the company accepted, and the form."""
    return await _show(page, by)


@post(_PATH)
@shown_again(_show)
async def accept_agreements(page: PageContext, by: ByAdministrator) -> PageResponse:
    """Accept the agreements that were shown."""
    consent = Consent(
        version=page.form.get("version", ""),
        accepted_at=by.now,
        accepted_by=AcceptedBy.USER,
        accepted_by_id=by.user_id,
        ip_address=page.request.client,
        user_agent=(page.user_agent or "")[:_AGENT_MAX] or None,
    )
    command = AcceptAgreements(
        caller=f"member:{by.member_id}", key=ids.new(), customers=(by.customer_id,), origin=by.origin, consent=consent
    )
    await page.server.bank.engine.submit(command)
    to = page.next_path
    return redirect(HOME, done="agreements-accepted") if to == HOME else redirect(to)


def _grouped(current: Agreement, same: Collection[str]) -> list[tuple[str, list[AgreementDocument]]]:
    """Return the documents by their titles: changed ones first, if only some have changed."""
    documents = sorted(current.documents, key=lambda each: each.title)
    changed = [each for each in documents if each.type not in same]
    if not changed or not same:
        return [(f"Version {current.version}", documents)]
    return [("Changed", changed), ("As before", [each for each in documents if each.type in same])]


def _written(day: date) -> str:
    return f"{day:%B} {day.day}, {day.year}"
