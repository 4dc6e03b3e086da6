"""The documents of an application, or of one person: the required ones, and their files."""

from typing import NamedTuple

from litestar import get, post

from billfold.documents.ports import DocumentRow
from billfold.onboarding.applications.rules.requirements import UNUSABLE
from billfold.onboarding.invites import invited
from billfold.onboarding.invites.rules import InvitationType
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound
from billfold.platform.problems import PROBLEMS
from billfold.web.onboarding.visit import Visit, document_name, visit_of
from billfold.web.page_context import PUBLIC, TAKES_FILE, PageContext, PageResponse, path_id, redirect
from billfold.web.uploads import received_file

_OF_FORMS = frozenset({"bad-request", "forbidden"})
"""Errors of the form rather than its file."""
_SERVER_ERROR = 500
_STATUSES = {
    "PENDING_UPLOAD": "Needed",
    "PENDING_REVIEW": "Uploaded",
    "APPROVED": "Approved",
    "INVALID": "Another file is needed",
}


class DocumentState(NamedTuple):
    """A document with its owner, the error of its file, and whether one may be sent."""

    row: DocumentRow
    name: str
    whose: str
    status: str
    may_upload: bool


@get("/onboarding/{invite_id:str}/documents", opt=PUBLIC)
async def show_documents(invite_id: str, page: PageContext) -> PageResponse:
    """Show the required documents."""
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
        visit = await _visit(page, invite_id)  # the refusal may have changed more than this document
        sentence = wrong.errors[0].msg if isinstance(wrong, InvalidInput) else wrong.detail
        if not isinstance(visit, Visit):
            return visit
        return _page(visit, {str(own_id): f"The file was not accepted: {sentence}"}, status=problem.status)
    return redirect(f"{visit.base}/documents", done="uploaded")


async def _upload(visit: Visit, document: DocumentRow) -> None:
    async with received_file(visit.page, document.customer_id, document.type) as sent:
        await invited.upload(visit.call, visit.bank, document.document_id, sent.request)


async def _visit(page: PageContext, invite_id: str) -> Visit | PageResponse:
    visit = await visit_of(page, invite_id)
    if isinstance(visit, Visit) and visit.kind == InvitationType.AUTHORIZED_PERSON:
        raise NotFound("There is no such page.")
    return visit


def _page(visit: Visit, field_errors: dict[str, str] | None = None, status: int | None = None) -> PageResponse:
    return visit.render(
        "onboarding_documents",
        field_errors=field_errors or {},
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
