"""The documents of an application, or of one person: which are waited for, and their files."""

from __future__ import annotations

import asyncio
import copy
from typing import NamedTuple

from litestar import get, post

from billfold.access.pages.onboarding.overview import document_name
from billfold.access.pages.onboarding.visit import Visit, visit_of
from billfold.documents.ports import FileKind
from billfold.documents.rules import max_file_bytes
from billfold.documents.types import DocumentRow
from billfold.http.file_forms import receive_file_form
from billfold.onboarding.applications.rules.requirements import UNUSABLE
from billfold.onboarding.invites import invited
from billfold.onboarding.invites.types import InvitationType
from billfold.pages.page_context import PUBLIC, TAKES_FILE, PageContext, PageResponse, path_id, redirect
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound
from billfold.platform.problems import PROBLEMS

_OF_FORMS = frozenset({"bad-request", "forbidden"})
"""What concerns the form and not its file."""
_SERVER_ERROR = 500
_STATUSES = {
    "PENDING_UPLOAD": "Needed",
    "PENDING_REVIEW": "Uploaded",
    "APPROVED": "Approved",
    "INVALID": "Another file is needed",
}


class DocumentState(NamedTuple):
    """A document as it is shown: whose it is, what is wrong with its file, and whether one may be sent."""

    row: DocumentRow
    name: str
    whose: str
    status: str
    may_upload: bool


@get("/onboarding/{invite_id:str}/documents", opt=PUBLIC)
async def show_documents(invite_id: str, page: PageContext) -> PageResponse:
    """Show which documents are waited for."""
    visit = await _visit(page, invite_id)
    return _page(visit) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/documents/{document_id:str}", opt=TAKES_FILE)
async def upload_document(invite_id: str, document_id: str, page: PageContext) -> PageResponse:
    """Upload the file of a document."""
    visit = await _visit(page, invite_id)
    if not isinstance(visit, Visit):
        return visit
    own_id = path_id(document_id)
    document = next((each for each in visit.view.documents if each.document_id == own_id), None)
    if document is None:
        raise NotFound("There is no such document.")
    try:
        await _upload(visit, document)
    except BillfoldError as wrong:
        problem = PROBLEMS[wrong.code]
        if problem.status >= _SERVER_ERROR or isinstance(wrong, NotFound) or wrong.code in _OF_FORMS:
            raise
        visit = await _visit(page, invite_id)  # what refused it may have changed more than this document
        sentence = wrong.errors[0].msg if isinstance(wrong, InvalidInput) else wrong.detail
        if not isinstance(visit, Visit):
            return visit
        return _page(visit, {str(own_id): f"The file was not taken: {sentence}"}, status=problem.status)
    return redirect(f"{visit.base}/documents", done="uploaded")


async def _upload(visit: Visit, document: DocumentRow) -> None:
    page, turns = visit.page, visit.page.server.turns
    most = max(max_file_bytes(kind, document.type) for kind in FileKind)
    async with (
        turns.receiving(document.customer_id),
        receive_file_form(
            page.request, page.receive, most=most, check=lambda fields: page.check_csrf(fields.get("csrf"))
        ) as sent,
        turns.in_memory(document.customer_id),
    ):
        part = copy.copy(page.request)
        part.headers, part.body = sent.headers, await asyncio.to_thread(sent.content.read)
        if not sent.headers:
            raise InvalidInput.at("body", msg="choose one first.", kind="missing")
        await invited.upload(visit.call, visit.bank, document.document_id, part)


async def _visit(page: PageContext, invite_id: str) -> Visit | PageResponse:
    visit = await visit_of(page, invite_id)
    if isinstance(visit, Visit) and visit.kind == InvitationType.AUTHORIZED_PERSON:
        raise NotFound("There is no such page.")
    return visit


def _page(visit: Visit, mistakes: dict[str, str] | None = None, status: int | None = None) -> PageResponse:
    return visit.render(
        "onboarding_documents",
        mistakes=mistakes or {},
        status=status,
        documents=[
            DocumentState(
                each,
                document_name(each.type),
                visit.company if each.related_party_id is None else visit.name_of(each.related_party_id),
                _STATUSES[each.status],
                each.status in UNUSABLE,
            )
            for each in visit.view.documents
        ],
    )
