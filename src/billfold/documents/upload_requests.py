"""Uploads: inspected, stored and recorded as documents, the same for both APIs."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Final
from uuid import UUID

from billfold.audit import record as audit_record
from billfold.audit.record import AuditedAction
from billfold.documents import rules as document_rules
from billfold.documents import store as document_store
from billfold.documents import uploads
from billfold.documents.ports import FileKind, StoredFile, UploadRejected
from billfold.documents.rules import TYPES
from billfold.documents.schemas import UploadedDocument
from billfold.documents.types import DocumentRow
from billfold.http.caller import Call
from billfold.http.raw_request import RawRequest, kind_in
from billfold.ledger.bank import Bank
from billfold.platform.errors import BillfoldError, InvalidInput

FILE_ERRORS: Final = ("not-found", "already-approved", "document-in-review")
"""What the upload of a file into a document that is there can be refused with besides."""


async def store_new_document(
    call: Call, bank: Bank, owner: UUID, document_type: str, request: RawRequest
) -> UploadedDocument:
    """Create a document of a type out of the file that is the body."""
    if document_type not in TYPES:
        raise InvalidInput.at("path", "document_type", msg=f"must be one of {', '.join(sorted(TYPES))}")
    kind, name = await _inspect(bank, document_type, request)
    document_id = call.new_resource_id(bank.seed)
    file = await bank.files.keep(request.body)
    async with _audited(call, bank, owner, document_id, document_type) as audited:
        await uploads.request_document(audited.conn, owner, document_id, document_type, at=call.now)
        row = await document_store.get_document(audited.conn, document_id, owner)
        if row.file is None:
            await _store_file(audited, bank, row, file, kind=kind, name=name, call=call)
        else:
            audited.skip()  # the same request ran before and was cut off
    return UploadedDocument(success=True, document_id=document_id)


async def store_document_file(call: Call, bank: Bank, document: DocumentRow, request: RawRequest) -> DocumentRow:
    """Give a document that waits for one the file that is the body."""
    if document.status == "APPROVED":
        raise BillfoldError("already-approved", "The document is approved.")
    kind, name = await _inspect(bank, document.type, request)
    file = await bank.files.keep(request.body)
    async with _audited(call, bank, document.customer_id, document.document_id, document.type) as audited:
        return await _store_file(audited, bank, document, file, kind=kind, name=name, call=call)


async def _inspect(bank: Bank, document_type: str, request: RawRequest) -> tuple[FileKind, str | None]:
    """Return what a file is and how it is called, when it may be taken.

    Raises InvalidInput, `payload-too-large`, `unsupported-media-type`, `document-not-readable`.
    """
    kind = kind_in(request)
    name = document_rules.parse_file_name(request.header(b"content-disposition"))
    document_rules.check_file(request.body, kind, document_type, name)
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


def _audited(
    call: Call, bank: Bank, owner: UUID, document_id: UUID, document_type: str
) -> AbstractAsyncContextManager[Any]:
    return audit_record.audited(
        bank.pool,
        bank.vault,
        owner,
        call.origin,
        "document.uploaded",
        resource=("document", document_id),
        details={"type": document_type},
        now=call.wall,
    )
