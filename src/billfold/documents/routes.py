"""Operations on documents: files that customers, or partners for them, send for review."""

from __future__ import annotations

from uuid import UUID

from billfold.audit.record import AuditedAction
from billfold.documents import rules, store, uploads
from billfold.documents.ports import FileKind, StoredFile, UploadRejected
from billfold.documents.schemas import Document, UploadedDocument, render_document
from billfold.documents.types import DocumentRow
from billfold.http.caller import Call, Caller, CustomerCaller
from billfold.http.operations import TOKEN_AND_KEY, Options, get, post, with_scope
from billfold.http.raw_request import RawRequest, kind_in
from billfold.ledger.bank import Bank
from billfold.platform.errors import BillfoldError, InvalidInput, NotFound

READS = with_scope("onboarding.read", "documents")
WRITES = with_scope("onboarding.write", "documents")
_NEW: Options = {"name": "upload_document", "tag": "documents", "takes_file": True}
_EXISTING: Options = {
    "name": "upload_document_file",
    "tag": "documents",
    "status": 200,
    "takes_file": True,
    "refuses": ("not-found", "already-approved", "document-in-review"),
}


@post("/api/v1/customers/{customer_id}/documents/{document_type}/file/", TOKEN_AND_KEY, **_NEW)
async def upload_customer_document(
    caller: Caller, bank: Bank, customer_id: UUID, document_type: str, request: RawRequest
) -> UploadedDocument:
    """Upload a customer document.

    The body is the file of a new document, such as WIRE_COUNTERPARTY_VERIFICATION; `content-disposition` may
    name it. No signature is needed.
    """
    owner = await caller.owner(bank, customer_id)
    return await _store_new(caller, bank, owner, document_type=document_type, request=request)


@post("/api/v1/documents/{document_id}/", TOKEN_AND_KEY, **_EXISTING)
async def upload_customer_document_file(caller: Caller, bank: Bank, document_id: UUID, request: RawRequest) -> Document:
    """Upload a document's file.

    The document must be waiting for a file, or have an invalid one.
    """
    return await _store_existing(caller, bank, await _find_document(caller, bank, document_id), request=request)


@get("/api/v1/documents/{document_id}/", name="get_document", tag="documents")
async def get_customer_document(caller: Caller, bank: Bank, document_id: UUID) -> Document:
    """Get a document."""
    return render_document(await _find_document(caller, bank, document_id))


@post("/api/v1/documents/{document_type}/", WRITES, **_NEW)
async def upload_document(
    member: CustomerCaller, bank: Bank, document_type: str, request: RawRequest
) -> UploadedDocument:
    """Upload a document.

    The body is the file of a new document, such as WIRE_COUNTERPARTY_VERIFICATION; `content-disposition` may
    name it.
    """
    return await _store_new(member, bank, member.customer_id, document_type=document_type, request=request)


@post("/api/v2/documents/{document_id}/", WRITES, **_EXISTING)
async def upload_document_file(member: CustomerCaller, bank: Bank, document_id: UUID, request: RawRequest) -> Document:
    """Upload a document's file.

    The document must be waiting for a file, or have an invalid one.
    """
    row = await store.get_document(bank.pool, document_id, member.customer_id)
    return await _store_existing(member, bank, row, request=request)


@get("/api/v2/documents/{document_id}/", READS, tag="documents")
async def get_document(member: CustomerCaller, bank: Bank, document_id: UUID) -> Document:
    """Get a document."""
    return render_document(await store.get_document(bank.pool, document_id, member.customer_id))


async def _find_document(caller: Caller, bank: Bank, document_id: UUID) -> DocumentRow:
    """Return the document of one of the partner's customers. Raises NotFound."""
    row = await store.get_document(bank.pool, document_id)
    try:
        await caller.owner(bank, row.customer_id)
    except NotFound:
        raise NotFound("There is no such document.") from None
    return row


async def _store_new(call: Call, bank: Bank, owner: UUID, document_type: str, request: RawRequest) -> UploadedDocument:
    """Create a document of a type with the file in the body."""
    if document_type not in rules.TYPES:
        raise InvalidInput.at("path", "document_type", msg=f"must be one of {', '.join(sorted(rules.TYPES))}")
    kind, name = await _inspect(bank, document_type, request)
    document_id = call.new_resource_id(bank.seed)
    file = await bank.files.keep(request.body)
    async with call.audited(
        bank, owner, "document.uploaded", resource_id=document_id, details={"type": document_type}
    ) as audited:
        await uploads.request_document(audited.conn, owner, document_id, type_=document_type, at=call.now)
        row = await store.get_document(audited.conn, document_id, owner)
        if row.file is None:
            await _store_file(audited, bank, row, file=file, kind=kind, name=name, call=call)
        else:
            audited.skip()  # the same request ran before and was cut off
    return UploadedDocument(success=True, document_id=document_id)


async def _store_existing(call: Call, bank: Bank, document: DocumentRow, request: RawRequest) -> Document:
    """Store the file in the body for a document that has none yet."""
    if document.status == "APPROVED":
        raise BillfoldError("already-approved", "The document is approved.")
    kind, name = await _inspect(bank, document.type, request)
    file = await bank.files.keep(request.body)
    async with call.audited(
        bank,
        document.customer_id,
        "document.uploaded",
        resource_id=document.document_id,
        details={"type": document.type},
    ) as audited:
        return render_document(await _store_file(audited, bank, document, file=file, kind=kind, name=name, call=call))


async def _inspect(bank: Bank, document_type: str, request: RawRequest) -> tuple[FileKind, str | None]:
    """Return the type and name of an acceptable file.

    Raises InvalidInput, `payload-too-large`, `unsupported-media-type`, `document-not-readable`.
    """
    kind = kind_in(request)
    name = rules.parse_file_name(request.header(b"content-disposition"))
    rules.check_file(request.body, kind, document_type, name=name)
    try:
        await bank.inspection.inspect(request.body, kind)
    except UploadRejected as refused:
        raise BillfoldError("document-not-readable", str(refused)) from None
    return kind, name


async def _store_file(
    audited: AuditedAction,
    bank: Bank,
    document: DocumentRow,
    file: StoredFile,
    *,
    kind: FileKind,
    name: str | None,
    call: Call,
) -> DocumentRow:
    invalid = bank.terms.screening.invalid_file(name)
    return await uploads.put_file(audited.conn, document, file, kind=kind, name=name, invalid=invalid, at=call.now)
