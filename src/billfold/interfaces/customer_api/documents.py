"""Documents: files that a customer sends to be reviewed."""

from __future__ import annotations

from litestar import get, post
from litestar.status_codes import HTTP_200_OK, HTTP_201_CREATED

from billfold.domain import documents
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.groups import DOCUMENTS
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.http import ids_in
from billfold.interfaces.http.arrivals import ArrivedRequest
from billfold.interfaces.http.marks import granted, refuses, takes_file
from billfold.interfaces.http.shapes.document import Document, UploadedDocument, render_document
from billfold.interfaces.http.uploads import FILE_REFUSALS, take_into, take_new

READS = granted("onboarding.read", DOCUMENTS)
WRITES = granted("onboarding.write", DOCUMENTS)


@post(
    "/api/v1/documents/{document_type:str}/",
    status_code=HTTP_201_CREATED,
    operation_id="upload_document",
    opt=WRITES | takes_file(),
    tags=["documents"],
)
async def upload_document(
    member: Member, bank: Bank, document_type: str, request: ArrivedRequest
) -> UploadedDocument:
    """Send a file as a new document, such as WIRE_COUNTERPARTY_VERIFICATION.

    The body is the file; `content-disposition` may name it.
    """
    return await take_new(member, bank, member.customer_id, document_type, request)


@post(
    "/api/v2/documents/{document_id:str}/",
    status_code=HTTP_200_OK,
    operation_id="upload_document_file",
    opt=WRITES | takes_file(*FILE_REFUSALS),
    tags=["documents"],
)
async def upload_document_file(
    member: Member, bank: Bank, document_id: str, request: ArrivedRequest
) -> Document:
    """Send the file of a document that waits for one, or whose file was found invalid."""
    asked = ids_in.path_uuid("document_id", document_id)
    row = await documents.get_document(bank.pool, asked, member.customer_id)
    return render_document(await take_into(member, bank, row, request))


@get(
    "/api/v2/documents/{document_id:str}/",
    operation_id="get_document",
    opt=READS | refuses("not-found"),
    tags=["documents"],
)
async def get_document(member: Member, bank: Bank, document_id: str) -> Document:
    """Read where a document stands."""
    asked = ids_in.path_uuid("document_id", document_id)
    return render_document(await documents.get_document(bank.pool, asked, member.customer_id))


ROUTES = [upload_document, upload_document_file, get_document]
