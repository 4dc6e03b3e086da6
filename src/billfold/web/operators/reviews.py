"""Reviews by the bank: read, decided with a reason, and their documents downloaded."""

import re
from collections.abc import Mapping

from litestar import get, post
from litestar.response import Response

from billfold.documents import store
from billfold.documents.ports import StoredFileMissing
from billfold.documents.store import fetch_opened
from billfold.identity.operators import Power, recorded_action
from billfold.onboarding import review_queue
from billfold.onboarding.review_queue import ReviewDecision
from billfold.pages.theme import page_headers
from billfold.platform.errors import InvalidInput, NotFound
from billfold.servicing.lists import names_of
from billfold.web.console.team import BankPage, InBank
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageResponse, path_id, redirect, shown_again

KINDS = {
    "counterparty": "Counterparty",
    "document": "Document",
    "ach": "ACH entry",
    "application": "Application",
    "sanctions": "Sanctions hit",
}
SHOWN_MAX = 100
_REASON_MAX = 500
_FILE_NAME_MAX = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


async def _show(operator: BankPage, kind: str, object_id: str, wrong: FormError = "") -> PageResponse:
    reviewed = path_id(object_id)
    details = await review_queue.describe(operator.bank, kind, reviewed)
    return operator.render(
        "bank_review",
        wrong=wrong,
        kind=kind,
        kinds=KINDS,
        object_id=reviewed,
        details=details,
        given=operator.page.form if wrong else {},
    )


@get("/bank/reviews")
async def list_reviews(operator: InBank) -> PageResponse:
    """List pending reviews, the oldest first."""
    kind = operator.page.query.get("kind", "")
    kind = kind if kind in KINDS else ""
    waiting = await review_queue.list_waiting(operator.bank, SHOWN_MAX, kind or None)
    names = await names_of(operator.bank.pool, {each.customer_id for each in waiting})
    return operator.render("bank_reviews", waiting=waiting, names=names, kinds=KINDS, kind=kind, shown_max=SHOWN_MAX)


@get("/bank/reviews/{kind:str}/{object_id:str}")
async def show_review(operator: InBank, kind: str, object_id: str) -> PageResponse:
    """Show one review."""
    return await _show(operator, kind, object_id)


@post("/bank/reviews/{kind:str}/{object_id:str}", opt=RECENT_AUTHENTICATION)
@shown_again(_show)
async def decide_review(operator: InBank, kind: str, object_id: str) -> PageResponse:
    """Approve or reject it."""
    page, reviewed = operator.page, path_id(object_id)
    await review_queue.describe(operator.bank, kind, reviewed)  # only an existing item of this kind is decided
    verb, reason = _decision(page.form)
    verdict = ReviewDecision(approved=verb == "approve", reason=reason or None, by=operator.by)
    details = {"kind": kind, "reason": reason, "user_id": str(page.user.user_id)}
    async with recorded_action(operator.bank, operator.by, f"review.{verb}", ("review", reviewed), **details):
        await review_queue.decide(operator.bank, reviewed, verdict)
    if (await review_queue.describe(operator.bank, kind, reviewed)).waits:
        return redirect("/bank/reviews", done="hit-cleared-once")
    return redirect("/bank/reviews", done=f"review-{verb.rstrip('e')}ed")


@get("/bank/documents/{document_id:str}", opt=RECENT_AUTHENTICATION)
async def download_document(operator: InBank, document_id: str) -> PageResponse:
    """Send a document's file as an attachment that no browser displays, because it comes from outside."""
    operator.by.require(Power.DECIDE)
    row = await store.get_document(operator.bank.pool, path_id(document_id))
    details = {"type": row.type, "user_id": str(operator.page.user.user_id)}
    async with recorded_action(operator.bank, operator.by, "review.download", ("document", row.document_id), **details):
        try:
            content = await fetch_opened(operator.bank, row)
        except StoredFileMissing as missing:
            raise NotFound(f"The file is not there: {missing}.") from None
    suffix = (row.media_type or "").rpartition("/")[2] or "bin"
    name = f"{_UNSAFE.sub('-', row.type)[:_FILE_NAME_MAX]}-{row.document_id}.{_UNSAFE.sub('', suffix)}"
    headers = {**page_headers(), "content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


def _decision(form: Mapping[str, str]) -> tuple[str, str]:
    """Return the verb and the reason of a form. Raises InvalidInput."""
    verb, reason = form.get("decision", ""), form.get("reason", "").strip()
    if verb not in {"approve", "reject"}:
        raise InvalidInput.at("decision", msg="must be chosen")
    if len(reason) > _REASON_MAX or (verb == "reject" and not reason):
        raise InvalidInput.at("reason", msg=f"must be 1 to {_REASON_MAX} characters")
    return verb, reason
