"""Applications with their content, which is sealed with the applicant's key in the database."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.data_keys.keys import DataKeys, SealedValue
from billfold.documents import store as document_store
from billfold.documents.ports import DocumentRow
from billfold.documents.store import open_names
from billfold.ledger.bank import Bank
from billfold.onboarding.applications import store
from billfold.onboarding.applications.forms import AnyForm, BusinessForm, IndividualForm, RelatedPartyForm
from billfold.onboarding.applications.rules import requirements
from billfold.onboarding.applications.types import ApplicationKind, ApplicationRow, RelatedPartyRow
from billfold.platform.crypto import associated_data
from billfold.platform.database.connection import Connection, Db
from billfold.platform.dates import format_moment
from billfold.platform.errors import NotFound
from billfold.platform.ids import command_id, derive

Content = dict[str, Any]
"""The fields of a form, ready for JSON, omitting absent ones."""


class Application(msgspec.Struct, kw_only=True):
    """An application with its content, its related parties and the documents of both."""

    row: ApplicationRow
    form: AnyForm
    parties: dict[UUID, RelatedPartyForm]
    party_rows: dict[UUID, RelatedPartyRow]
    documents: list[DocumentRow]

    @override
    def __repr__(self) -> str:
        """Return the id, without personal data."""
        return f"Application({self.row.application_id})"

    def required(self, seed: bytes) -> dict[UUID, requirements.DocumentRequest]:
        """Return the required documents, by their ids."""
        requests = requirements.required_documents(self.form, self.parties, self.row.requested_documents)
        return {document_id_of(seed, self.row, each): each for each in requests}

    def missing(self, seed: bytes) -> list[str]:
        """Return what is missing before it can be submitted."""
        required = self.required(seed)
        documents = [each for each in self.documents if each.document_id in required]
        return requirements.missing_requirements(self.form, self.parties, documents)

    def documents_of(self, related_party_id: UUID | None) -> list[DocumentRow]:
        """Return the documents of a related party, or those of the applicant."""
        return [each for each in self.documents if each.related_party_id == related_party_id]


def document_id_of(seed: bytes, row: ApplicationRow, request: requirements.DocumentRequest) -> UUID:
    """Return the id of the document of a type that an applicant, or a related party, must provide."""
    subject = request.related_party_id or row.applicant_id
    return derive(seed, command_id(f"document:{row.applicant_id}:{subject}", request.type), 0)


def name_of(application: Application) -> str:
    """Return the applicant's name, in one line."""
    form = application.form
    return form.name.written if isinstance(form, IndividualForm) else form.name or "(no name)"


async def open_application(conn: Db, bank: Bank, row: ApplicationRow) -> Application:
    """Return an application with its content. Raises NotFound if that was destroyed after its retention."""
    found = await open_applications(conn, bank, [row])
    if not found:
        raise NotFound("The application was destroyed at the end of its retention.")
    return found[0]


async def open_applications(conn: Db, bank: Bank, rows: Sequence[ApplicationRow]) -> list[Application]:
    """Return applications with their content, omitting those that were destroyed after their retention."""
    keys = await bank.ports[DataKeys].load(conn, [row.applicant_id for row in rows])
    rows = [row for row in rows if keys.get(row.applicant_id) is not None]
    ids = [row.customer_id for row in rows], [row.application_id for row in rows]
    parties, documents = defaultdict(list), defaultdict(list)
    for party in await store.list_related_parties(conn, *ids):
        parties[party.customer_id, party.application_id].append(party)
    for document in await open_names(conn, bank, await document_store.list_application_documents(conn, *ids)):
        documents[document.customer_id, document.application_id].append(document)
    return [
        await _open(
            conn,
            bank,
            row,
            parties=parties[row.customer_id, row.application_id],
            documents=documents[row.customer_id, row.application_id],
        )
        for row in rows
    ]


async def _open(
    conn: Db, bank: Bank, row: ApplicationRow, *, parties: Sequence[RelatedPartyRow], documents: list[DocumentRow]
) -> Application:
    kind: type[AnyForm] = BusinessForm if row.kind == ApplicationKind.BUSINESS else IndividualForm
    content = await bank.ports[DataKeys].open(conn, row.applicant_id, row.content, aad=_place(row))
    return Application(
        row=row,
        form=msgspec.json.decode(content, type=kind),
        parties=await _open_parties(conn, bank, row, parties),
        party_rows={each.related_party_id: each for each in parties},
        documents=documents,
    )


async def seal_application(
    conn: Db, bank: Bank, applicant_id: UUID, application_id: UUID, *, content: Content
) -> bytes:
    """Return the content of an application, sealed."""
    place = associated_data("application", "content", application_id, tenant_id=applicant_id)
    return await bank.ports[DataKeys].seal(conn, applicant_id, msgspec.json.encode(content), aad=place)


async def seal_related_party(
    conn: Connection, bank: Bank, row: ApplicationRow, related_party_id: UUID, *, content: Content
) -> bytes:
    """Return the content of a related party, sealed."""
    place = _party_place(row, related_party_id)
    return await bank.ports[DataKeys].seal(conn, row.applicant_id, msgspec.json.encode(content), aad=place)


async def describe_application(bank: Bank, application: Application) -> list[str]:
    """Return applicant, related parties, missing items and status history, one line each. Numbers are omitted."""
    row = application.row
    return [
        f"{name_of(application)} ({_spoken(row.kind)}) is {row.status}",
        *(f"reason: {_spoken(each)}" for each in row.exception_reasons),
        *(f"missing: {each}" for each in application.missing(bank.seed)),
        *(
            f"related party: {form.name.written if form.name else '(no name)'}, {_spoken(', '.join(form.roles or ()))}"
            for form in application.parties.values()
        ),
        *(f"document {each.document_id} {each.type} {each.status}" for each in application.documents),
        *(f"{_spoken(each.status)}: {format_moment(each.moved_at)}" for each in await store.list_moves(bank.pool, row)),
    ]


def _spoken(codes: str) -> str:
    return codes.replace("_", " ").lower() if codes.isupper() else codes


def content_of(form: AnyForm | RelatedPartyForm) -> Content:
    """Return the fields of a form, ready for JSON; null fields are kept, fields that were not sent are omitted."""
    content: Content = msgspec.to_builtins(form)
    return content


async def _open_parties(
    conn: Db, bank: Bank, row: ApplicationRow, parties: Sequence[RelatedPartyRow]
) -> dict[UUID, RelatedPartyForm]:
    sealed = [SealedValue(row.applicant_id, each.content, _party_place(row, each.related_party_id)) for each in parties]
    plain = await bank.ports[DataKeys].open_many(conn, sealed)
    return {
        each.related_party_id: msgspec.json.decode(content, type=RelatedPartyForm)
        for each, content in zip(parties, plain, strict=True)
    }


def _place(row: ApplicationRow) -> bytes:
    return associated_data("application", "content", row.application_id, tenant_id=row.applicant_id)


def _party_place(row: ApplicationRow, related_party_id: UUID) -> bytes:
    return associated_data("related_party_application", "content", related_party_id, tenant_id=row.applicant_id)
