"""Applications of persons, and documents of applications by their type."""

from uuid import UUID

from billfold.documents.routes import UploadedDocument, store_file
from billfold.documents.rules import TYPES
from billfold.http.operations import TOKEN_AND_KEY, get, post
from billfold.http.parameters import ListQuery, page_of
from billfold.http.raw_request import RawRequest
from billfold.http.schemas import CursorList
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.onboarding.applications import requests, store
from billfold.onboarding.applications.content import document_id_of, open_applications
from billfold.onboarding.applications.forms import NewIndividualForm
from billfold.onboarding.applications.routes.business import ApplicationQuery
from billfold.onboarding.applications.rules.requirements import DocumentRequest
from billfold.onboarding.applications.schemas import IndividualApplication, render_individual
from billfold.onboarding.applications.types import ApplicationKind
from billfold.platform.errors import InvalidInput

_ONE = "/api/v1/applications/{application_id}/"


@post("/api/v1/applications/", tag="applications", refuses=("customer-not-open", "duplicate-id"))
async def create_individual_application(caller: Caller, bank: Bank, data: NewIndividualForm) -> IndividualApplication:
    """Create individual application.

    The same `id` with the same content is the same application.
    """
    made = await requests.create_application(caller, bank, ApplicationKind.INDIVIDUAL, data, application_id=data.id)
    return render_individual(made, bank.seed)


@get("/api/v1/applications/", tag="applications")
async def list_individual_applications(
    caller: Caller, bank: Bank, wanted: ListQuery, query: ApplicationQuery
) -> CursorList[IndividualApplication]:
    """List individual applications.

    Newest first.
    """
    owner, kind = requests.owner_of(caller), ApplicationKind.INDIVIDUAL
    page = await wanted.read(bank, store.APPLICATIONS, owner, kind, query.statuses, scope="individual-applications")
    opened = await open_applications(bank.pool, bank, page.items)
    return page_of(page, [render_individual(each, bank.seed) for each in opened])


@get(_ONE, tag="applications")
async def get_individual_application(caller: Caller, bank: Bank, application_id: UUID) -> IndividualApplication:
    """Get individual application."""
    found = await requests.read_application(caller, bank, application_id, ApplicationKind.INDIVIDUAL)
    return render_individual(found, bank.seed)


@post(
    f"{_ONE}apply/",
    tag="applications",
    status=200,
    refuses=("application-not-editable", "application-incomplete", "customer-not-open", "usage-limit-reached"),
)
async def apply_individual_application(caller: Caller, bank: Bank, application_id: UUID) -> IndividualApplication:
    """Submit individual application.

    It is verified and decided; no document may be missing.
    """
    row = await requests.find_own(caller, bank, application_id, ApplicationKind.INDIVIDUAL)
    return render_individual(await requests.submit_application(caller, bank, row), bank.seed)


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

    The body is the file of the document of this type, of an individual or of a business. No signature is needed.
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
