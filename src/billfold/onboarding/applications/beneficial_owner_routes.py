"""Related parties of applications: beneficial owners and those who control or represent the business."""

from uuid import UUID

from billfold.documents.routes import Document, render_document
from billfold.http.caller import Call
from billfold.http.operations import SIGNED, MaybeInPath, delete, get, patch, post
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.onboarding.applications import content, forms, requests, schemas, store, types
from billfold.onboarding.applications.routes import READS, V1, V2, WRITES
from billfold.onboarding.applications.rules.requirements import is_owner

_V1, _V2 = f"{V1}{{application_id}}/related-party-applications/", f"{V2}{{application_id}}/related-parties/"
_V1_ONE, _V2_ONE = f"{_V1}{{related_party_application_id}}/", f"{_V2}{{related_party_id}}/"


@post(_V1, SIGNED, tag="applications", refuses=("application-not-editable",))
@post(_V2, WRITES, tag="applications", refuses=("application-not-editable",))
async def create_related_party(
    caller: Call, bank: Bank, application_id: UUID, data: forms.RelatedPartyForm
) -> schemas.RelatedPartyApplication:
    """Add related party.

    A person who owns, controls or represents the business; all shares together may not exceed 1.
    """
    row = await requests.find_own(caller, bank, application_id)
    application, party_id = await requests.add_related_party(caller, bank, row, data)
    return schemas.render_related_party(party_id, application.parties[party_id])


@get(_V1, SIGNED, tag="applications")
@get(_V2, READS, tag="applications")
async def list_related_parties(caller: Call, bank: Bank, application_id: UUID) -> list[schemas.RelatedPartyApplication]:
    """List related parties.

    Returns them in the order in which they were added.
    """
    return schemas.render_related_parties(await requests.read_application(caller, bank, application_id))


@patch(_V1_ONE, SIGNED, tag="applications", refuses=("application-not-editable",))
@patch(_V2_ONE, WRITES, tag="applications", refuses=("application-not-editable",))
async def update_related_party(
    caller: Call,
    bank: Bank,
    application_id: UUID,
    related_party_application_id: MaybeInPath,
    related_party_id: MaybeInPath,
    data: forms.RelatedPartyForm,
) -> schemas.RelatedPartyApplication:
    """Update related party.

    Named fields are replaced, and removed by null.
    """
    row = await requests.find_own(caller, bank, application_id)
    party_id = _named(related_party_application_id, related_party_id)
    changed = await requests.update_related_party(caller, bank, row, party_id, data)
    return schemas.render_related_party(party_id, changed.parties[party_id])


@delete(_V1_ONE, SIGNED, tag="applications", refuses=("application-not-editable",))
@delete(_V2_ONE, WRITES, tag="applications", refuses=("application-not-editable",))
async def delete_related_party(
    caller: Call,
    bank: Bank,
    application_id: UUID,
    related_party_application_id: MaybeInPath,
    related_party_id: MaybeInPath,
) -> None:
    """Remove related party."""
    row = await requests.find_own(caller, bank, application_id)
    await requests.remove_related_party(caller, bank, row, _named(related_party_application_id, related_party_id))


@get(_V1_ONE, SIGNED, tag="applications", name="get_related_party_documents")
@get(f"{_V1_ONE}documents/", SIGNED, tag="applications")
@get(f"{_V2_ONE}documents/", READS, tag="applications")
async def list_related_party_documents(
    caller: Call,
    bank: Bank,
    application_id: UUID,
    related_party_application_id: MaybeInPath,
    related_party_id: MaybeInPath,
) -> list[Document]:
    """List documents of related party.

    Returns the documents required of the person, and their status.
    """
    row = await requests.find_own(caller, bank, application_id)
    party_id = _named(related_party_application_id, related_party_id)
    application = await requests.find_party(bank, row, party_id)
    return [render_document(each) for each in application.documents_of(party_id)]


@get("/api/v1/customers/{customer_id}/beneficial-owners/", tag="customers")
async def list_beneficial_owners(
    caller: Caller, bank: Bank, customer_id: UUID
) -> list[schemas.RelatedPartyApplication]:
    """List beneficial owners.

    Returns the related parties of the customer's application who own a quarter or more, or are named as owners.
    """
    customer = await caller.customer(bank, customer_id)
    row = await store.find_by_applicant(bank.pool, customer.customer_id)
    if row is None or row.status != types.ApplicationStatus.APPROVED:
        return []
    parties = (await content.open_application(bank.pool, bank, row)).parties
    return [schemas.render_related_party(each, party) for each, party in parties.items() if is_owner(party)]


def _named(*ids: UUID | None) -> UUID:
    """Return the id in the path, whose parameter has a different name in each API."""
    return next(each for each in ids if each is not None)
