"""Inviting people to an application, resending an invite, and withdrawing it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from billfold.data_keys.keys import DataKeys
from billfold.events.email import outbox, templates
from billfold.events.email.outbox import mailbox_of
from billfold.http.caller import Call
from billfold.identity.users.rules import check_email
from billfold.ledger.bank import Bank
from billfold.ledger.customers import require_active
from billfold.onboarding.applications.changes import ApplicationChange, application_change
from billfold.onboarding.applications.content import Application, name_of
from billfold.onboarding.applications.requests import add_party, party_in
from billfold.onboarding.applications.rules.status import require_editable
from billfold.onboarding.applications.types import ApplicationRow
from billfold.onboarding.invites import rules, store
from billfold.onboarding.invites.rules import InvitationType, Invite, Invitee, InviteRow, WantedInvite
from billfold.platform import crypto
from billfold.platform.crypto import associated_data
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.errors import InvalidInput, Refused
from billfold.platform.ids import command_id, derive
from billfold.platform.text import is_name, plain_text

_PURPOSES: Final[Mapping[InvitationType, tuple[str, str]]] = {
    InvitationType.COLLABORATOR: ("Fill in the application of", "fill in"),
    InvitationType.AUTHORIZED_PERSON: ("Review and submit the application of", "review and submit"),
    InvitationType.RELATED_PARTY: ("Your details for the application of", "give your own details for"),
}
"""The beginning of the e-mail's subject, and its request."""


class _Sender(NamedTuple):
    """The sender of an invite: the request, the bank, and the name of the customer who applies."""

    call: Call
    bank: Bank
    name: str


class _PlannedInvite(NamedTuple):
    """An invite to be sent: the recipient, an existing invite, and whether that was mailed moments ago."""

    wanted: WantedInvite
    invitee: Invitee
    earlier: InviteRow | None = None
    is_sent: bool = False
    is_same_address: bool = False


async def invite(call: Call, bank: Bank, row: ApplicationRow, wanted: Sequence[WantedInvite]) -> list[Invite]:
    """Invite people, all or none. Those already invited get a new link.

    Links that the same address got before stay valid as well, each for its own seven days.

    Raises NotFound, InvalidInput, Refused `application-not-editable`, `invite-limit-reached`, `customer-not-open`.
    """
    customer = await call.customer(bank, row.customer_id)
    require_active(customer.account_status)
    sender = _Sender(call, bank, customer.name)
    async with application_change(bank, row, "invited", origin=call.origin, at=call.now, wall=call.wall) as change:
        require_editable(change.row)
        known = await open_invites(change.action.conn, bank, change.application, now=call.now)
        planned = [_plan_invite(call, known, each, change.application) for each in wanted]
        if len(known) + sum(each.earlier is None for each in planned) > rules.INVITES_MAX:
            raise Refused("invite-limit-reached", f"An application has at most {rules.INVITES_MAX} invites.")
        await _count_emails(change, [each.invitee for each in planned if not each.is_sent])
        made = [await _send_invite(sender, change, each, number=n) for n, each in enumerate(planned)]
        change.action.details["invites"] = [
            {"id": str(each.row.invite_id), "invitation_type": each.row.invitation_type} for each in made
        ]
    return made


async def withdraw(call: Call, bank: Bank, row: ApplicationRow, invite_id: UUID) -> None:
    """Withdraw an invite: its links and sessions no longer work. Raises NotFound."""
    async with application_change(
        bank, row, "invite_withdrawn", origin=call.origin, at=call.now, wall=call.wall
    ) as change:
        change.action.details["invite_id"] = str(invite_id)
        await store.delete_invite(change.action, change.row, invite_id)


async def open_invites(conn: Db, bank: Bank, application: Application, *, now: datetime) -> list[Invite]:
    """Return the invites of an application with the invitees, in order of creation."""
    rows = await store.list_invites(conn, application.row)
    applicant_id = application.row.applicant_id
    found = []
    for each in rows:
        content = await bank.ports[DataKeys].open(
            conn, applicant_id, each.content, aad=_place(each.invite_id, applicant_id)
        )
        found.append(_shown(each, msgspec.json.decode(content, type=Invitee), application, now=now))
    return found


async def _send_invite(sender: _Sender, change: ApplicationChange, planned: _PlannedInvite, *, number: int) -> Invite:
    if planned.is_sent and planned.earlier is not None:
        return _shown(planned.earlier, planned.invitee, change.application, now=sender.call.now)
    return await _renew_invite(sender, change, planned, number)


async def _renew_invite(sender: _Sender, change: ApplicationChange, planned: _PlannedInvite, number: int) -> Invite:
    """Write an invite with a new link, and mail it; a missing related party is added."""
    call, bank, wanted, earlier = sender.call, sender.bank, planned.wanted, planned.earlier
    party_id = wanted.related_party_id or (earlier.related_party_id if earlier else None)
    if wanted.invitation_type == InvitationType.RELATED_PARTY and party_id is None:
        party_id = derive(bank.seed, command_id(call.key_owner, call.key), number)
        await add_party(call, change, party_id, _new_party(planned.invitee))
    secret, link_hash = crypto.new_token()
    invite_id = (
        earlier.invite_id if earlier else derive(bank.seed, command_id(f"invite:{call.key_owner}", call.key), number)
    )
    made = InviteRow(
        customer_id=change.row.customer_id,
        invite_id=invite_id,
        application_id=change.row.application_id,
        invitation_type=wanted.invitation_type,
        related_party_id=party_id,
        requested_fields=wanted.requested_fields,
        content=await _seal(change, invite_id, planned.invitee),
        created_at=earlier.created_at if earlier else call.now,
        expires_at=call.now + rules.INVITE_LIFETIME,
        sent_at=call.wall,
        link_hash=link_hash,
        link_expires_at=call.wall + rules.INVITE_LIFETIME,
        accepted_at=None,
    )
    await store.end_sessions(change.action.conn, invite_id)
    await _keep_links(change.action.conn, planned)
    await store.put_invite(change.action, made)
    await _mail_invite(sender, change, planned, secret=secret)
    return _shown(made, planned.invitee, change.application, now=call.now)


async def _keep_links(conn: Connection, planned: _PlannedInvite) -> None:
    """Keep the links of an invite that is mailed again; links sent to another address end."""
    if planned.earlier is None:
        return
    if planned.is_same_address:
        await store.keep_link(conn, planned.earlier.invite_id)
    else:
        await store.end_earlier_links(conn, planned.earlier.invite_id)


def _plan_invite(call: Call, known: Iterable[Invite], wanted: WantedInvite, application: Application) -> _PlannedInvite:
    invitee = _complete_invitee(wanted, application)
    there = (each for each in known if each.row.related_party_id in {None, *application.parties})
    earlier = _find_earlier(there, wanted, invitee)
    if earlier is None:
        return _PlannedInvite(wanted, invitee)
    is_same = earlier.invitee == invitee and earlier.row.requested_fields == wanted.requested_fields
    is_sent = is_same and rules.is_just_sent(earlier.row, now=call.now, wall=call.wall)
    is_same_address = earlier.invitee.email == invitee.email
    return _PlannedInvite(wanted, invitee, earlier.row, is_sent=is_sent, is_same_address=is_same_address)


def _complete_invitee(wanted: WantedInvite, application: Application) -> Invitee:
    """Return the person to mail; missing data comes from the related party. Raises NotFound, InvalidInput."""
    invitee = wanted.invitee
    if wanted.related_party_id is None:
        return invitee
    party = party_in(application, wanted.related_party_id)
    email = invitee.email or (check_email(party.email) if party.email else "")
    if not email:
        raise InvalidInput.at("body", "email", msg="is needed: the related party has none", kind="missing")
    name = party.name or None
    return Invitee(
        email=email,
        first_name=invitee.first_name or (name and name.first_name),
        last_name=invitee.last_name or (name and name.last_name),
    )


def _find_earlier(known: Iterable[Invite], wanted: WantedInvite, invitee: Invitee) -> Invite | None:
    """Return the same person's earlier invite of this type: a related party has one, even with a new address."""
    for each in known:
        if each.row.invitation_type != wanted.invitation_type:
            continue
        if wanted.related_party_id is not None:
            if each.row.related_party_id == wanted.related_party_id:
                return each
        elif each.invitee.email == invitee.email and (
            wanted.invitation_type != InvitationType.RELATED_PARTY or each.invitee == invitee
        ):
            return each
    return None


def _new_party(invitee: Invitee) -> dict[str, object]:
    return {"name": {"first_name": invitee.first_name, "last_name": invitee.last_name}, "email": invitee.email}


async def _count_emails(change: ApplicationChange, invitees: Sequence[Invitee]) -> None:
    """Count the e-mails to be sent, in a fixed order to avoid deadlocks. Refuses: invite-limit-reached."""
    vault, row = change.bank.vault, change.row
    uses = Counter(("invitations.recipient", mailbox_of(vault, each.email)) for each in invitees)
    uses["invitations.application", row.applicant_id] = len(invitees)
    uses["invitations.sender", row.customer_id] = len(invitees)
    limits = change.bank.settings.limits
    await count_usage(change.action.conn, limits, uses, change.wall, code="invite-limit-reached")


async def _mail_invite(sender: _Sender, change: ApplicationChange, planned: _PlannedInvite, *, secret: str) -> None:
    bank, invitee = sender.bank, planned.invitee
    company, inviter = (plain_text(each) or "a business" for each in (name_of(change.application), sender.name))
    purpose, verb = _PURPOSES[planned.wanted.invitation_type]
    notice = templates.application_invite(
        invitee.first_name if is_name(invitee.first_name or "") else None,
        company,
        purpose=purpose,
        asks=f"{inviter} asks you to {verb} the application of {company} for an account at {bank.settings.bank_name}.",
        link=f"{bank.settings.auth_origin}/onboarding?link={secret}",
    )
    await outbox.queue_email(change.action.conn, bank.vault, invitee.email, notice=notice, now=change.wall)


async def _seal(change: ApplicationChange, invite_id: UUID, invitee: Invitee) -> bytes:
    applicant_id = change.row.applicant_id
    place = _place(invite_id, applicant_id)
    return await change.bank.ports[DataKeys].seal(
        change.action.conn, applicant_id, msgspec.json.encode(invitee), aad=place
    )


def _shown(row: InviteRow, invitee: Invitee, application: Application, *, now: datetime) -> Invite:
    return Invite(row=row, invitee=invitee, status=rules.status_of(row, application.parties, now))


def _place(invite_id: UUID, applicant_id: UUID) -> bytes:
    return associated_data(store.TABLE, "content", invite_id, tenant_id=applicant_id)
