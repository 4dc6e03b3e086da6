"""Operations of invited persons, within what their invite permits, and drafts of their answers."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec
from typing_extensions import override

from billfold.data_keys.keys import DataKeys
from billfold.documents.ports import DocumentRow
from billfold.documents.routes import store_file
from billfold.http.caller import Call
from billfold.http.raw_request import RawRequest
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.onboarding.applications import requests
from billfold.onboarding.applications import store as application_store
from billfold.onboarding.applications.changes import application_change
from billfold.onboarding.applications.content import Application, content_of, open_application
from billfold.onboarding.applications.forms import AgreementConsent, BusinessForm, RelatedPartyForm
from billfold.onboarding.applications.requests import Check
from billfold.onboarding.applications.rules.status import require_editable
from billfold.onboarding.applications.types import ApplicationRow
from billfold.onboarding.invites import rules, store
from billfold.onboarding.invites.rules import InvitationType, InviteRow
from billfold.platform.crypto import associated_data
from billfold.platform.dates import et_date
from billfold.platform.errors import NotFound, Refused

_SEEN = "application as it was shown"


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a step as they were typed, what is wrong with each, and the mark of what was stored with them."""

    values: dict[str, str] = msgspec.field(default_factory=dict)
    mistakes: dict[str, str] = msgspec.field(default_factory=dict)
    mark: str = ""


async def list_drafts(bank: Bank, invite: InviteRow, applicant_id: UUID) -> dict[str, Draft]:
    """Return the drafts of an invite by step."""
    sealed = await store.list_drafts(bank.pool, invite.invite_id)
    opened = {}
    for step, content in sealed.items():
        place = _place(invite, applicant_id, step)
        plain = await bank.ports[DataKeys].open(bank.pool, applicant_id, content, aad=place)
        opened[step] = msgspec.json.decode(plain, type=Draft)
    return opened


async def put_draft(bank: Bank, invite: InviteRow, applicant_id: UUID, *, step: str, draft: Draft) -> None:
    """Store the incomplete fields of a step; an empty draft is deleted."""
    content = None
    if draft.values or draft.mistakes:
        place = _place(invite, applicant_id, step)
        content = await bank.ports[DataKeys].seal(bank.pool, applicant_id, msgspec.json.encode(draft), aad=place)
    await store.put_draft(bank.pool, invite.invite_id, step, content)


def mark_of(bank: Bank, shown: Any) -> str:  # noqa: ANN401 - anything that JSON can hold
    """Return a token that identifies the values shown in a form without revealing them."""
    return bank.vault.compute_mac(_canonical(shown), _SEEN).hex()


def is_marked(bank: Bank, mark: str, shown: Any) -> bool:  # noqa: ANN401 - anything that JSON can hold
    """Return whether a mark identifies these values."""
    return bank.vault.verify_mac(_bytes_of(mark), _canonical(shown), _SEEN)


def unless_changed(bank: Bank, mark: str, shown_of: Callable[[Application], Any]) -> Check:
    """Return a check that refuses `content-changed` if an application no longer has the values that were marked."""

    def check(application: Application) -> None:
        if not is_marked(bank, mark, shown_of(application)):
            raise Refused("content-changed", "Somebody else has changed this in the meantime.")

    return check


def _bytes_of(mark: str) -> bytes:
    try:
        return bytes.fromhex(mark)
    except ValueError:
        return b""


def _canonical(shown: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(shown, order="deterministic")


def _place(invite: InviteRow, applicant_id: UUID, step: str) -> bytes:
    return associated_data("invite_draft", "content", f"{invite.invite_id}/{step}", tenant_id=applicant_id)


_NAMES: Final = {
    InvitationType.COLLABORATOR: "Invited collaborator",
    InvitationType.AUTHORIZED_PERSON: "Invited authorized person",
    InvitationType.RELATED_PARTY: "Invited related party",
}


class InvitedCall(Call, frozen=True, kw_only=True):
    """One request of a browser that opened an invite."""

    invite: InviteRow

    @property
    @override
    def origin(self) -> Origin:
        """The invite: the addressee is known, not the person who opened it."""
        return Origin(kind="INVITED", name=self.name, ip_address=self.address, user_agent=self.agent)

    @property
    @override
    def only_customer_id(self) -> UUID:
        """The owner of the application."""
        return self.invite.customer_id

    @override
    def may(self, scope: str) -> bool:
        """Return False: an invite has no scopes."""
        return False


class InvitedView(msgspec.Struct, frozen=True, kw_only=True):
    """The data an invited person sees: a related party sees only their own, and the name of the business."""

    row: ApplicationRow
    form: BusinessForm
    parties: dict[UUID, RelatedPartyForm]
    documents: list[DocumentRow]
    missing: list[str]


def name_in_log(row: InviteRow) -> str:
    """Return the name of the invited person for the audit log."""
    return f"{_NAMES[row.invitation_type]} {row.invite_id}"


async def find_application(bank: Bank, invite: InviteRow) -> ApplicationRow:
    """Return the application of an invite."""
    return await application_store.get_application(bank.pool, invite.customer_id, invite.application_id)


async def read(bank: Bank, invite: InviteRow) -> InvitedView:
    """Return the data visible to the invite. Raises NotFound if the application was destroyed after its retention."""
    row = await find_application(bank, invite)
    return view_of(await open_application(bank.pool, bank, row), invite, bank.seed)


def view_of(application: Application, invite: InviteRow, seed: bytes) -> InvitedView:
    """Return the part of an application that is visible to an invite. Raises NotFound."""
    form, party_id = application.form, invite.related_party_id
    assert isinstance(form, BusinessForm)
    parties, missing = application.parties, application.missing(seed)
    if party_id is None:
        return InvitedView(
            row=application.row, form=form, parties=parties, documents=application.documents, missing=missing
        )
    party, prefix = content_of(requests.party_in(application, party_id)), f"related_parties.{party_id}."
    asked = rules.own_fields(invite) | {"documents"}
    shown = {name: value for name, value in party.items() if name in asked}
    return InvitedView(
        row=application.row,
        form=BusinessForm(name=form.name),
        parties={party_id: msgspec.convert(shown, RelatedPartyForm)},
        documents=application.documents_of(party_id),
        missing=[each for each in missing if each.startswith(prefix) and each.split(".")[2] in asked],
    )


async def accept(call: InvitedCall, bank: Bank) -> None:
    """Record that the invited person has begun. Raises Refused `application-not-editable`."""
    row = await find_application(bank, call.invite)
    async with application_change(
        bank, row, "invite_accepted", origin=call.origin, at=call.now, wall=call.wall
    ) as change:
        require_editable(change.row)
        change.action.details["invite_id"] = str(call.invite.invite_id)
        invites = await store.list_invites(change.action.conn, change.row)
        found = next((each for each in invites if each.invite_id == call.invite.invite_id), None)
        if found is None or found.link_hash != call.invite.link_hash:
            raise NotFound("There is no such invite.")
        if found.accepted_at is not None:
            change.action.skip()
            return
        await store.put_invite(change.action, msgspec.structs.replace(found, accepted_at=call.wall))


async def save_business(call: InvitedCall, bank: Bank, data: BusinessForm, *, check: Check) -> None:
    """Change the content of the application. Raises as `update_application`, and Refused `forbidden`."""
    rules.require_may_edit_business(call.invite)
    await requests.update_application(call, bank, await find_application(bank, call.invite), data, check=check)


async def add_party(call: InvitedCall, bank: Bank, data: RelatedPartyForm) -> UUID:
    """Add a related party; repeating the call adds nothing. Raises as `add_related_party`, Refused `forbidden`."""
    rules.require_may_edit_business(call.invite)
    row = await find_application(bank, call.invite)
    return (await requests.add_related_party(call, bank, row, data))[1]


async def save_party(call: InvitedCall, bank: Bank, party_id: UUID, data: RelatedPartyForm, *, check: Check) -> None:
    """Change a related party. Raises as `update_related_party`, and Refused `forbidden`."""
    rules.require_may_edit_party(call.invite, party_id, content_of(data))
    row = await find_application(bank, call.invite)
    await requests.update_related_party(call, bank, row, party_id, data, check=check)


async def remove_party(call: InvitedCall, bank: Bank, party_id: UUID) -> None:
    """Remove a related party. Raises as `remove_related_party`, and Refused `forbidden`."""
    rules.require_may_edit_business(call.invite)
    await requests.remove_related_party(call, bank, await find_application(bank, call.invite), party_id)


async def upload(call: InvitedCall, bank: Bank, document_id: UUID, request: RawRequest) -> None:
    """Store the request body as the file of a document of the application.

    Raises as `store_file`, NotFound, Refused `application-not-editable`, `forbidden`.
    """
    row = await find_application(bank, call.invite)
    require_editable(row)
    application = await open_application(bank.pool, bank, row)
    document = next((each for each in application.documents if each.document_id == document_id), None)
    if document is None:
        raise NotFound("There is no such document.")
    rules.require_may_upload(call.invite, document.related_party_id)
    key = (document.customer_id, document_id, document.type)
    await store_file(call, bank, key, request=request, subject=document.subject)


async def submit(call: InvitedCall, bank: Bank, *, version: str, check: Check) -> None:
    """Accept this version of the agreements and submit the application.

    Raises as `submit_application`, Refused `forbidden`, `content-changed` when another version is in force.
    """
    rules.require_may_submit(call.invite)
    if version != bank.terms.agreements.in_force(et_date(call.now)):
        raise Refused("content-changed", "The agreements have changed since then. Read them, and accept them again.")
    row = await find_application(bank, call.invite)
    consent = AgreementConsent(version=version, timestamp=call.wall)
    await requests.submit_application(call, bank, row, consent=consent, invite_id=call.invite.invite_id, check=check)
