"""Applications of businesses and individuals, and their documents."""

from typing import Annotated, Literal
from uuid import UUID

from billfold.accounts.notes.schemas import ChangeNote, NoteQuery
from billfold.accounts.notes.store import annotate, list_noted, show_notes
from billfold.accounts.notes.types import ShownNote
from billfold.documents.routes import Document, UploadedDocument, render_document, store_file
from billfold.documents.rules import TYPES
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, TOKEN_AND_KEY, get, patch, post, with_scope
from billfold.http.parameters import ListQuery, page_of, texts_among
from billfold.http.raw_request import RawRequest
from billfold.http.schemas import CursorList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.onboarding.applications import forms, requests, schemas, store
from billfold.onboarding.applications.content import document_id_of, open_applications
from billfold.onboarding.applications.rules.requirements import DocumentRequest
from billfold.onboarding.applications.types import ApplicationKind, ApplicationRow, ApplicationStatus
from billfold.platform.database.paging import Page
from billfold.platform.errors import InvalidInput

READS, WRITES = with_scope("onboarding.read", "onboarding"), with_scope("onboarding.write", "onboarding")
V1, V2 = "/api/v1/business-applications/", "/api/v2/business-applications/"
_STATUSES = frozenset(ApplicationStatus)


class ApplicationQuery(NoteQuery, frozen=True, kw_only=True):
    """Filter of applications; None for all."""

    statuses: Annotated[list[str] | None, texts_among("status", _STATUSES)] = None


@post(V1, SIGNED, tag="applications", refuses=("customer-not-open", "duplicate-id"))
@post(V2, WRITES, tag="applications", refuses=("customer-not-open", "duplicate-id"))
async def create_business_application(
    caller: Call, bank: Bank, data: forms.CreateBusinessApplication
) -> schemas.BusinessApplication:
    """Create business application.

    Every field is optional until the application is submitted. Sending the same `id` with the same content again
    returns the existing application.
    """
    made = await requests.create_application(caller, bank, ApplicationKind.BUSINESS, data, application_id=data.id)
    return schemas.render_business(made, bank.seed)


@get(V1, SIGNED, tag="applications")
@get(V2, READS, tag="applications")
async def list_business_applications(
    caller: Call, bank: Bank, wanted: ListQuery, query: ApplicationQuery
) -> CursorList[schemas.BusinessApplication]:
    """List business applications.

    Returns applications, newest first.
    """
    page = await _page(caller, bank, wanted, query, ApplicationKind.BUSINESS)
    opened = await open_applications(bank.pool, bank, page.items)
    return page_of(page, [schemas.render_business(each, bank.seed) for each in opened])


@get(f"{V1}{{application_id}}/", SIGNED, tag="applications")
@get(f"{V2}{{application_id}}/", READS, tag="applications")
async def get_business_application(caller: Call, bank: Bank, application_id: UUID) -> schemas.BusinessApplication:
    """Get business application."""
    return schemas.render_business(await requests.read_application(caller, bank, application_id), bank.seed)


@patch(f"{V1}{{application_id}}/", SIGNED, tag="applications", refuses=("application-not-editable",))
@patch(f"{V2}{{application_id}}/", WRITES, tag="applications", refuses=("application-not-editable",))
async def update_business_application(
    caller: Call, bank: Bank, application_id: UUID, data: forms.BusinessForm
) -> schemas.BusinessApplication:
    """Update business application.

    Named fields are replaced, and removed by null; in `contact` and `risk_info` each field separately.
    """
    row = await requests.find_own(caller, bank, application_id)
    return schemas.render_business(await requests.update_application(caller, bank, row, data), bank.seed)


@post(
    f"{V1}{{application_id}}/apply/",
    SIGNED,
    tag="applications",
    status=200,
    refuses=("application-not-editable", "application-incomplete", "customer-not-open", "usage-limit-reached"),
)
@post(
    f"{V2}{{application_id}}/apply/",
    WRITES,
    tag="applications",
    status=200,
    refuses=("application-not-editable", "application-incomplete", "customer-not-open", "usage-limit-reached"),
)
async def apply_business_application(caller: Call, bank: Bank, application_id: UUID) -> schemas.BusinessApplication:
    """Submit business application.

    It is verified and decided; `missing_requirements` must be empty.
    """
    row = await requests.find_own(caller, bank, application_id)
    return schemas.render_business(await requests.submit_application(caller, bank, row), bank.seed)


@post(
    f"{V1}{{application_id}}/withdraw/", SIGNED, tag="applications", status=200, refuses=("application-not-editable",)
)
@post(
    f"{V2}{{application_id}}/withdraw/", WRITES, tag="applications", status=200, refuses=("application-not-editable",)
)
async def withdraw_business_application(caller: Call, bank: Bank, application_id: UUID) -> schemas.BusinessApplication:
    """Withdraw business application.

    A CREATED application becomes CLOSED, for good. Its invites no longer work.
    """
    row = await requests.find_own(caller, bank, application_id)
    return schemas.render_business(await requests.withdraw_application(caller, bank, row), bank.seed)


async def _page(
    caller: Call, bank: Bank, wanted: ListQuery, query: ApplicationQuery, kind: ApplicationKind
) -> Page[ApplicationRow]:
    query.require_alone(query.statuses)
    owner = requests.owner_of(caller)
    noted = await list_noted(bank, owner, "application", query)
    return await wanted.read(bank, store.APPLICATIONS, owner, kind, query.statuses, noted, scope="applications")


_ONE = "/api/v1/applications/{application_id}/"


@post("/api/v1/applications/", tag="applications", refuses=("customer-not-open", "duplicate-id"))
async def create_individual_application(
    caller: Caller, bank: Bank, data: forms.NewIndividualForm
) -> schemas.IndividualApplication:
    """Create individual application.

    Sending the same `id` with the same content again returns the existing application.
    """
    made = await requests.create_application(caller, bank, ApplicationKind.INDIVIDUAL, data, application_id=data.id)
    return schemas.render_individual(made, bank.seed)


@get("/api/v1/applications/", tag="applications")
async def list_individual_applications(
    caller: Caller, bank: Bank, wanted: ListQuery, query: ApplicationQuery
) -> CursorList[schemas.IndividualApplication]:
    """List individual applications.

    Returns applications, newest first.
    """
    page = await _page(caller, bank, wanted, query, ApplicationKind.INDIVIDUAL)
    opened = await open_applications(bank.pool, bank, page.items)
    return page_of(page, [schemas.render_individual(each, bank.seed) for each in opened])


@get(_ONE, tag="applications")
async def get_individual_application(caller: Caller, bank: Bank, application_id: UUID) -> schemas.IndividualApplication:
    """Get individual application."""
    found = await requests.read_application(caller, bank, application_id, ApplicationKind.INDIVIDUAL)
    return schemas.render_individual(found, bank.seed)


class ApplicationNote(ShownNote, kw_only=True):
    """The note of an application."""

    application_id: UUID
    object_type: Literal["ApplicationNote"] = "ApplicationNote"


@get(f"{_ONE}note/", tag="applications")
@get(f"{V2}{{application_id}}/note/", READS, tag="applications")
async def get_application_note(caller: Call, bank: Bank, application_id: UUID) -> ApplicationNote:
    """Get note of application.

    Returns your own id and metadata of an application of a business or an individual.
    """
    return await _show_note(bank, await requests.find_own(caller, bank, application_id, None))


async def _show_note(bank: Bank, row: ApplicationRow) -> ApplicationNote:
    shown = {(row.customer_id, row.application_id): ApplicationNote(application_id=row.application_id)}
    return (await show_notes(bank, shown))[0]


@patch(f"{_ONE}note/", tag="applications", refuses=("external-id-taken",))
@patch(f"{V2}{{application_id}}/note/", WRITES, tag="applications", refuses=("external-id-taken",))
async def annotate_application(caller: Call, bank: Bank, application_id: UUID, data: ChangeNote) -> ApplicationNote:
    """Annotate application.

    Changes `external_id` and `metadata`. The customer that follows has a note of its own.
    """
    row = await requests.find_own(caller, bank, application_id, None)
    await annotate(caller, bank, row.customer_id, kind="application", object_id=application_id, given=data)
    return await _show_note(bank, row)


@post(
    f"{_ONE}apply/",
    tag="applications",
    status=200,
    refuses=("application-not-editable", "application-incomplete", "customer-not-open", "usage-limit-reached"),
)
async def apply_individual_application(
    caller: Caller, bank: Bank, application_id: UUID
) -> schemas.IndividualApplication:
    """Submit individual application.

    It is verified and decided; no document may be missing.
    """
    row = await requests.find_own(caller, bank, application_id, ApplicationKind.INDIVIDUAL)
    return schemas.render_individual(await requests.submit_application(caller, bank, row), bank.seed)


@post(
    f"{_ONE}documents/{{document_type}}/file/",
    TOKEN_AND_KEY,
    tag="applications",
    takes_file=True,
    refuses=("already-approved", "document-in-review", "application-not-editable"),
)
async def upload_application_document(
    caller: Caller, bank: Bank, application_id: UUID, document_type: str, request: RawRequest
) -> UploadedDocument:
    """Upload document of application.

    The body is the file of the document of this type, for an individual or a business. No signature is needed.
    """
    if document_type not in TYPES:
        raise InvalidInput.at("path", "document_type", msg=f"must be one of {', '.join(sorted(TYPES))}")
    row = await requests.find_own(caller, bank, application_id, None)
    document_id = document_id_of(bank.seed, row, DocumentRequest(None, document_type))
    await store_file(
        caller,
        bank,
        (row.customer_id, document_id, document_type),
        request=request,
        application_id=application_id,
        subject=row.applicant_id,
    )
    return UploadedDocument(success=True, document_id=document_id)


@get(f"{V1}{{application_id}}/documents/", SIGNED, tag="applications")
@get(f"{V2}{{application_id}}/documents/", READS, tag="applications")
async def list_application_documents(caller: Call, bank: Bank, application_id: UUID) -> list[Document]:
    """List documents of application.

    Returns the documents required of the business, which depend on its data, and their status.
    """
    application = await requests.read_application(caller, bank, application_id)
    return [render_document(each) for each in application.documents_of(None)]
