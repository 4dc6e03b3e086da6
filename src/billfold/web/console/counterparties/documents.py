"""Documents that show whose account a counterparty is: uploaded before it is added, again where one was no good."""

from __future__ import annotations

from typing import Any

from litestar import post

from billfold.web.console.company import Company, InCompany
from billfold.web.console.counterparties.counterparties import SCOPE, counterparty_page, kind_of, new_page, sent_documents
from billfold.documents.routes import upload_document, upload_document_file
from billfold.documents.rules import PROOF_OF_ACCOUNT
from billfold.http.operations import Operation
from billfold.web.page_context import PageResponse, RouteOptions, path_id, redirect
from billfold.web.sent_files import received_file
from billfold.platform.errors import InvalidInput, Refused

_TAKES_FILE: RouteOptions = {"takes_file": True}


@post("/companies/{customer_id:str}/counterparties/documents", opt=_TAKES_FILE)
async def upload_for_new(company: InCompany) -> PageResponse:
    """Upload a document of an account that is about to be added; its form is next."""
    company.require(SCOPE)
    query = company.page.query
    kind, earlier = kind_of(query.get("type", "")), sent_documents(query.get("document", ""))
    try:
        made = await _upload(company, upload_document, document_type=PROOF_OF_ACCOUNT)
    except (InvalidInput, Refused) as wrong:
        return new_page(company, kind, _at_file(wrong))
    documents = ",".join([*earlier, str(made.document_id)])
    return redirect(f"{company.path}/counterparties/new?type={kind}&document={documents}&done=uploaded")


@post("/companies/{customer_id:str}/counterparties/{counterparty_id:str}/documents/{document_id:str}", opt=_TAKES_FILE)
async def upload_again(company: InCompany, counterparty_id: str, document_id: str) -> PageResponse:
    """Upload the file of a document that waits for one."""
    company.require(SCOPE)
    key = path_id(counterparty_id)
    try:
        await _upload(company, upload_document_file, document_id=path_id(document_id))
    except (InvalidInput, Refused) as wrong:
        return await counterparty_page(company, key, _at_file(wrong))
    return redirect(f"{company.path}/counterparties/{key}", done="uploaded")


async def _upload(company: Company, operation: Operation, **names: object) -> Any:  # noqa: ANN401 - what it answers
    async with received_file(company.page, company.customer_id, PROOF_OF_ACCOUNT) as sent:
        return await company.api.send_file(operation, sent.request, key=sent.fields.get("form_key", ""), **names)


def _at_file(wrong: InvalidInput | Refused) -> InvalidInput:
    """Return what is wrong with a file at its field."""
    said = wrong.errors[0].msg if isinstance(wrong, InvalidInput) else wrong.detail
    return InvalidInput.at("file", msg=f"was not taken: {said.rstrip('.')}")
