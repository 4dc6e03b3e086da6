"""Operations on documents: files that customers, or partners for them, send for review."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.audit.record import audited_by
from billfold.documents import rules, store
from billfold.documents.ports import APPLICATION_DOCUMENT_JOB, DocumentRow, FileInspector, UploadRejected
from billfold.documents.store import keep_sealed, open_names, seal_name
from billfold.http.caller import Call
from billfold.http.operations import TOKEN_AND_KEY, MaybeInPath, Options, get, post, with_scope
from billfold.http.raw_request import RawRequest
from billfold.http.schemas import one_of
from billfold.http.uploads import kind_in
from billfold.ledger import scheduler
from billfold.ledger.bank import Bank, limit_usage
from billfold.ledger.customers import CustomerStatus
from billfold.ledger.scheduler import run_job
from billfold.ledger.types import ScheduledJob
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound, Refused
from billfold.platform.file_kinds import FileKind

READS = with_scope("onboarding.read", "documents", also="transfers.read")
WRITES = with_scope("onboarding.write", "documents", also="transfers.write")
_REFUSES = ("customer-not-open", "usage-limit-reached")
_NEW: Options = {"name": "upload_document", "tag": "documents", "takes_file": True, "refuses": _REFUSES}
_EXISTING: Options = {
    "name": "upload_document_file",
    "tag": "documents",
    "status": 200,
    "takes_file": True,
    "refuses": ("not-found", "already-approved", "document-in-review", "application-not-editable"),
}


class Document(msgspec.Struct, kw_only=True):
    """A requested or uploaded document; `name` is its file's."""

    id: UUID
    type: Annotated[str, one_of(*sorted(rules.TYPES))]
    status: Annotated[str, one_of("PENDING_UPLOAD", "PENDING_REVIEW", "APPROVED", "INVALID")]
    exception_reason: str | None
    name: str | None
    object_type: Literal["Document"] = "Document"


class UploadedDocument(msgspec.Struct, kw_only=True):
    """A file was accepted as a new document."""

    success: bool
    document_id: UUID


def render_document(row: DocumentRow) -> Document:
    """Return a document for display."""
    return Document(
        id=row.document_id, type=row.type, status=row.status, exception_reason=row.exception_reason, name=row.name
    )


@post("/api/v1/customers/{customer_id}/documents/{document_type}/file/", TOKEN_AND_KEY, **_NEW)
@post("/api/v1/documents/{document_type}/", WRITES, **_NEW)
async def upload_document(
    caller: Call, bank: Bank, customer_id: MaybeInPath, document_type: str, request: RawRequest
) -> UploadedDocument:
    """Upload a document.

    The body is the file of a new document, such as WIRE_COUNTERPARTY_VERIFICATION; `content-disposition` may
    name it. No signature is needed in the Partner API. Documents of counterparties and disputes need only
    `transfers.write`.
    """
    customer = await caller.customer(bank, customer_id)
    _check_allowed(caller, "onboarding.write", document_type)
    if customer.account_status == CustomerStatus.CLOSED:
        raise Refused("customer-not-open", "The customer is CLOSED.")
    if document_type not in rules.TYPES:
        raise InvalidInput.at("path", "document_type", msg=f"must be one of {', '.join(sorted(rules.TYPES))}")
    await limit_usage(bank, "documents", customer.customer_id)
    document_id = caller.new_resource_id(bank.seed)
    await store_file(caller, bank, (customer.customer_id, document_id, document_type), request=request, is_new=True)
    return UploadedDocument(success=True, document_id=document_id)


@post("/api/v1/documents/{document_id}/", TOKEN_AND_KEY, **_EXISTING)
@post("/api/v2/documents/{document_id}/", WRITES, **_EXISTING)
async def upload_document_file(caller: Call, bank: Bank, document_id: UUID, request: RawRequest) -> Document:
    """Upload a document's file.

    The document must be waiting for a file, or have an invalid one.
    """
    found = await _find_document(caller, bank, document_id)
    _check_allowed(caller, "onboarding.write", found.type)
    if found.status == "APPROVED":
        raise BillfoldError("already-approved", "The document is approved.")
    if rules.parse_file_name(request.header(b"content-disposition")) is None:
        raise InvalidInput.at("header", "content-disposition", msg="must name the file", kind="missing")
    key = (found.customer_id, document_id, found.type)
    return render_document(await store_file(caller, bank, key, request=request, subject=found.subject))


@get("/api/v1/documents/{document_id}/", tag="documents")
@get("/api/v2/documents/{document_id}/", READS, tag="documents")
async def get_document(caller: Call, bank: Bank, document_id: UUID) -> Document:
    """Get a document."""
    found = await _find_document(caller, bank, document_id)
    _check_allowed(caller, "onboarding.read", found.type)
    return render_document(found)


def _check_allowed(caller: Call, scope: str, document_type: str) -> None:
    """Raise `forbidden` for a document that is not of a payment: those who add counterparties may prove them."""
    if document_type not in rules.OF_PAYMENTS and not caller.may(scope):
        raise Refused("forbidden", f"A document of type {document_type} needs the scope {scope}.")


async def _find_document(caller: Call, bank: Bank, document_id: UUID) -> DocumentRow:
    """Return the document of the token's customer, or of one of the partner's. Raises NotFound."""
    row = await store.get_document(bank.pool, document_id, caller.only_customer_id)
    try:
        await caller.owner(bank, row.customer_id)
    except NotFound:
        raise NotFound("There is no such document.") from None
    return (await open_names(bank.pool, bank, [row]))[0]


async def store_file(
    call: Call,
    bank: Bank,
    key: tuple[UUID, UUID, str],
    request: RawRequest,
    *,
    is_new: bool = False,
    application_id: UUID | None = None,
    subject: UUID | None = None,
) -> DocumentRow:
    """Store the file in the body for the document of (customer_id, document_id, type).

    A new document (`is_new`), or one that an application may have but does not require, is inserted first. The file is
    sealed with the data key of `subject`, or of the owner.
    """
    owner, document_id, document_type = key
    kind, name = await _inspect(bank, document_type, request)
    invalid = bank.terms.screening.invalid_file(name)
    file = await keep_sealed(bank, subject or owner, document_id, request.body)
    name = await seal_name(bank, subject or owner, document_id, name)
    job = ScheduledJob(APPLICATION_DOCUMENT_JOB, document_id, owner, call.now)
    async with audited_by(
        call, bank, owner, "document.uploaded", resource_id=document_id, details={"type": document_type}
    ) as audited_action:
        conn = audited_action.conn
        if is_new or application_id is not None:
            whose = {"application_id": application_id, "subject_id": subject}
            await store.request_document(conn, owner, document_id, type_=document_type, at=call.now, **whose)
        row = await store.get_document(conn, document_id, owner)
        if is_new and row.file is not None:
            audited_action.skip()  # an earlier attempt of the same request was interrupted
            return (await open_names(conn, bank, [row]))[0]
        stored = await store.put_file(conn, row, file, kind=kind, name=name, invalid=invalid, at=call.now)
        if stored.application_id is not None:
            await scheduler.schedule(conn, [job])
    if stored.application_id is not None:
        # The worker would do it too; the sender of the last file sees the result at once.
        await run_job(bank, job)
    return (await open_names(bank.pool, bank, [stored]))[0]


async def _inspect(bank: Bank, document_type: str, request: RawRequest) -> tuple[FileKind, str | None]:
    """Return the type and name of an acceptable file.

    Raises InvalidInput, `payload-too-large`, `unsupported-media-type`, `document-not-readable`.
    """
    kind = kind_in(request)
    name = rules.parse_file_name(request.header(b"content-disposition"))
    rules.check_file(request.body, kind, document_type, name=name)
    try:
        await bank.ports[FileInspector].inspect(request.body, kind)
    except UploadRejected as refused:
        raise BillfoldError("document-not-readable", str(refused)) from None
    return kind, name
