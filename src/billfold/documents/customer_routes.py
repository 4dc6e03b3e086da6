"""Documents: files that a customer sends to be reviewed."""

from __future__ import annotations

from uuid import UUID

from billfold.documents import store as document_store
from billfold.documents.schemas import Document, UploadedDocument, render_document
from billfold.documents.upload_requests import FILE_ERRORS, store_document_file, store_new_document
from billfold.http.customer_api.member import CustomerCaller
from billfold.http.limits.rate_groups import DOCUMENTS
from billfold.http.operations import get, post, with_scope
from billfold.http.raw_request import RawRequest
from billfold.ledger.bank import Bank

READS = with_scope("onboarding.read", DOCUMENTS)
WRITES = with_scope("onboarding.write", DOCUMENTS)


@post("/api/v1/documents/{document_type}/", WRITES, takes_file=True, tag="documents")
async def upload_document(
    member: CustomerCaller, bank: Bank, document_type: str, request: RawRequest
) -> UploadedDocument:
    """Send a file as a new document, such as WIRE_COUNTERPARTY_VERIFICATION.

    The body is the file; `content-disposition` may name it.
    """
    return await store_new_document(member, bank, member.customer_id, document_type, request)


@post("/api/v2/documents/{document_id}/", WRITES, status=200, takes_file=True, refuses=(*FILE_ERRORS,), tag="documents")
async def upload_document_file(member: CustomerCaller, bank: Bank, document_id: UUID, request: RawRequest) -> Document:
    """Send the file of a document that waits for one, or whose file was found invalid."""
    row = await document_store.get_document(bank.pool, document_id, member.customer_id)
    return render_document(await store_document_file(member, bank, row, request))


@get("/api/v2/documents/{document_id}/", READS, tag="documents")
async def get_document(member: CustomerCaller, bank: Bank, document_id: UUID) -> Document:
    """Read where a document stands."""
    return render_document(await document_store.get_document(bank.pool, document_id, member.customer_id))
