"""Documents: files that a partner sends for its customers, to be reviewed."""

from __future__ import annotations

from uuid import UUID

from billfold.documents import store as document_store
from billfold.documents.schemas import Document, UploadedDocument, render_document
from billfold.documents.types import DocumentRow
from billfold.documents.upload_requests import FILE_ERRORS, store_document_file, store_new_document
from billfold.http.caller import Caller
from billfold.http.operations import TOKEN_AND_KEY, get, post
from billfold.http.raw_request import RawRequest
from billfold.ledger.bank import Bank
from billfold.platform.errors import NotFound


@post(
    "/api/v1/customers/{customer_id}/documents/{document_type}/file/", TOKEN_AND_KEY, takes_file=True, tag="documents"
)
async def upload_document(
    caller: Caller, bank: Bank, customer_id: UUID, document_type: str, request: RawRequest
) -> UploadedDocument:
    """Send a file as a new document of a customer, such as WIRE_COUNTERPARTY_VERIFICATION.

    The body is the file; `content-disposition` may name it. No signature is needed.
    """
    owner = await caller.customer_id(bank, customer_id)
    return await store_new_document(caller, bank, owner, document_type, request)


@post(
    "/api/v1/documents/{document_id}/",
    TOKEN_AND_KEY,
    status=200,
    takes_file=True,
    refuses=(*FILE_ERRORS,),
    tag="documents",
)
async def upload_document_file(caller: Caller, bank: Bank, document_id: UUID, request: RawRequest) -> Document:
    """Send the file of a document that waits for one, or whose file was found invalid."""
    row = await _find_document(caller, bank, document_id)
    return render_document(await store_document_file(caller, bank, row, request))


@get("/api/v1/documents/{document_id}/", tag="documents")
async def get_document(caller: Caller, bank: Bank, document_id: UUID) -> Document:
    """Read where a document stands."""
    return render_document(await _find_document(caller, bank, document_id))


async def _find_document(caller: Caller, bank: Bank, document_id: UUID) -> DocumentRow:
    """Return the document of one of the partner's customers. Raises NotFound."""
    row = await document_store.get_document(bank.pool, document_id)
    try:
        await caller.customer_id(bank, row.customer_id)
    except NotFound:
        raise NotFound("There is no such document.") from None
    return row
