"""Documents: files that a partner sends for its customers, to be reviewed."""

from __future__ import annotations

from litestar import get, post
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED

from billfold.domain import documents
from billfold.domain.documents import DocumentRow
from billfold.engine.bank import Bank
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.arrivals import ArrivedRequest
from billfold.interfaces.http.calls import Caller
from billfold.interfaces.http.marks import UNSIGNED, refuses, takes_file
from billfold.interfaces.http.shapes.document import Document, UploadedDocument, render_document
from billfold.interfaces.http.uploads import FILE_REFUSALS, take_into, take_new
from billfold.kit.errors import NotFound


@post(
    "/api/v1/customers/{customer_id:str}/documents/{document_type:str}/file/",
    status_code=HTTP_201_CREATED,
    operation_id="upload_document",
    opt=UNSIGNED | takes_file("not-found"),
    tags=["documents"],
)
async def upload_document(
    caller: Caller, bank: Bank, customer_id: str, document_type: str, request: ArrivedRequest
) -> UploadedDocument:
    """Send a file as a new document of a customer, such as WIRE_COUNTERPARTY_VERIFICATION.

    The body is the file; `content-disposition` may name it. No signature is needed.
    """
    owner = await caller.customer_id(bank, ids_in.path_uuid("customer_id", customer_id))
    return await take_new(caller, bank, owner, document_type, request)


@post(
    "/api/v1/documents/{document_id:str}/",
    status_code=HTTP_200_OK,
    operation_id="upload_document_file",
    opt=UNSIGNED | takes_file(*FILE_REFUSALS),
    tags=["documents"],
)
async def upload_document_file(
    caller: Caller, bank: Bank, document_id: str, request: ArrivedRequest
) -> Document:
    """Send the file of a document that waits for one, or whose file was found invalid."""
    row = await _own(caller, bank, document_id)
    return render_document(await take_into(caller, bank, row, request))


@get(
    "/api/v1/documents/{document_id:str}/",
    operation_id="get_document",
    opt=refuses("not-found"),
    tags=["documents"],
)
async def get_document(caller: Caller, bank: Bank, document_id: str) -> Document:
    """Read where a document stands."""
    return render_document(await _own(caller, bank, document_id))


async def _own(caller: Caller, bank: Bank, document_id: str) -> DocumentRow:
    """Return the document of one of the partner's customers. Raises NotFound."""
    row = await documents.get_document(bank.pool, ids_in.path_uuid("document_id", document_id))
    try:
        await caller.customer_id(bank, row.customer_id)
    except NotFound:
        raise NotFound("There is no such document.") from None
    return row


ROUTES = [upload_document, upload_document_file, get_document]
