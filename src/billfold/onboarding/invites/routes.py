"""Invites to applications: people without an account who fill in, review or submit them."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from billfold.accounts.customers.schemas import Email, NamePart
from billfold.http.operations import delete, get, post
from billfold.http.schemas import BankTime
from billfold.identity.users.rules import check_email, check_name
from billfold.ledger.bank import Bank
from billfold.oauth.caller import CustomerCaller
from billfold.onboarding.applications import requests
from billfold.onboarding.applications.routes import READS, V2, WRITES
from billfold.onboarding.invites import invitations, rules
from billfold.onboarding.invites.rules import PARTY_FIELDS, InvitationType, WantedInvite
from billfold.platform.errors import FieldError, InvalidInput
from billfold.platform.text import is_name


class InvitedCollaborator(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A person who may fill in the application."""

    email: Email
    first_name: NamePart | None = None
    last_name: NamePart | None = None


class InviteCollaborators(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="invitation_type", tag="COLLABORATOR"
):
    """Let others fill in the application: its data, its related parties, its documents."""

    collaborators: Annotated[list[InvitedCollaborator], msgspec.Meta(min_length=1, max_length=rules.COLLABORATORS_MAX)]


class InviteAuthorizedPerson(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="invitation_type", tag="AUTHORIZED_PERSON"
):
    """Ask a person to review the application, to accept the agreements and to submit it."""

    email: Email
    first_name: NamePart
    last_name: NamePart


class InviteRelatedParty(
    msgspec.Struct, forbid_unknown_fields=True, kw_only=True, tag_field="invitation_type", tag="RELATED_PARTY"
):
    """Ask a related party for their own data and documents: an existing one, or a new one with this name.

    Without `email` the related party's address is used. Without `requested_fields` they are asked for all fields
    except `roles` and `ownership_percentage`.
    """

    related_party_id: UUID | None = None
    email: Email | None = None
    first_name: NamePart | None = None
    last_name: NamePart | None = None
    requested_fields: (
        Annotated[
            list[str],
            msgspec.Meta(
                min_length=1,
                max_length=20,
                description=f"Names of fields of a related party: {', '.join(sorted(PARTY_FIELDS))}.",
            ),
        ]
        | None
    ) = None


NewInvite = InviteCollaborators | InviteAuthorizedPerson | InviteRelatedParty


class Collaborator(msgspec.Struct, kw_only=True):
    """An invited person. The link of an invite works until `expires_at`, even after it is ACCEPTED."""

    id: UUID
    invitation_type: InvitationType
    email: str
    status: rules.InviteStatus
    related_party_id: UUID | None
    time_created: BankTime
    expires_at: BankTime
    object_type: Literal["Collaborator"] = "Collaborator"


class Invites(msgspec.Struct, kw_only=True):
    """The invited people."""

    invites: list[Collaborator]
    object_type: Literal["List"] = "List"


def wanted_in(data: NewInvite) -> list[WantedInvite]:
    """Return the invites in a body, with normalized addresses. Raises InvalidInput with every error."""
    mistakes = list(_mistakes(data))
    if mistakes:
        raise InvalidInput(mistakes)
    if isinstance(data, InviteCollaborators):
        return [
            WantedInvite(invitation_type=InvitationType.COLLABORATOR, invitee=_invitee(each))
            for each in data.collaborators
        ]
    if isinstance(data, InviteAuthorizedPerson):
        return [WantedInvite(invitation_type=InvitationType.AUTHORIZED_PERSON, invitee=_invitee(data))]
    return [
        WantedInvite(
            invitation_type=InvitationType.RELATED_PARTY,
            invitee=_invitee(data),
            related_party_id=data.related_party_id,
            requested_fields=tuple(dict.fromkeys(data.requested_fields or ())),
        )
    ]


def render_invites(invites: Sequence[rules.Invite]) -> Invites:
    """Return invites for display, in the order in which they were made."""
    return Invites(
        invites=[
            Collaborator(
                id=each.row.invite_id,
                invitation_type=each.row.invitation_type,
                email=each.invitee.email,
                status=each.status,
                related_party_id=each.row.related_party_id,
                time_created=each.row.created_at,
                expires_at=each.row.expires_at,
            )
            for each in invites
        ]
    )


_Person = InvitedCollaborator | InviteAuthorizedPerson | InviteRelatedParty


def _invitee(person: _Person) -> rules.Invitee:
    return rules.Invitee(
        email="" if person.email is None else check_email(person.email),
        first_name=person.first_name and person.first_name.strip(),
        last_name=person.last_name and person.last_name.strip(),
    )


def _mistakes(data: NewInvite) -> Iterator[FieldError]:
    if isinstance(data, InviteCollaborators):
        yield from _list_mistakes(data.collaborators)
        return
    yield from _person_mistakes(data, ("body",))
    if isinstance(data, InviteRelatedParty):
        choice = f"must be one of {', '.join(sorted(PARTY_FIELDS))}"
        for index, name in enumerate(data.requested_fields or ()):
            if name not in PARTY_FIELDS:
                yield FieldError(("body", "requested_fields", index), choice, "value_error")
        needed = () if data.related_party_id else ("email", "first_name", "last_name")
        for name in needed:
            if getattr(data, name) is None:
                yield FieldError(("body", name), "is needed without related_party_id", "missing")


def _list_mistakes(collaborators: Sequence[InvitedCollaborator]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, each in enumerate(collaborators):
        place = ("body", "collaborators", index)
        wrong = list(_person_mistakes(each, place))
        yield from wrong
        email = "" if wrong else check_email(each.email)
        if email and email in seen:
            yield FieldError((*place, "email"), "is there twice", "value_error")
        seen.add(email)


def _person_mistakes(person: _Person, place: tuple[str | int, ...]) -> Iterator[FieldError]:
    for name in ("first_name", "last_name"):
        value = getattr(person, name)
        if value is None:
            continue
        try:
            check_name(value, name)
        except InvalidInput as wrong:
            yield FieldError((*place, name), wrong.errors[0].msg, "value_error")
        else:
            if not is_name(value):
                yield FieldError((*place, name), "must be a name", "value_error")
    if person.email is not None:
        try:
            check_email(person.email)
        except InvalidInput as wrong:
            yield FieldError((*place, "email"), wrong.errors[0].msg, "value_error")


_ONE = f"{V2}{{application_id}}/"


@post(
    f"{_ONE}invite/",
    WRITES,
    tag="applications",
    status=200,
    refuses=("application-not-editable", "customer-not-open", "invite-limit-reached"),
)
async def invite_to_application(member: CustomerCaller, bank: Bank, application_id: UUID, data: NewInvite) -> Invites:
    """Invite people to an application.

    Each is mailed a link, which works for seven days and needs no account: to fill in the application, to review and
    submit it, or to fill in their own data as a related party. Anyone already invited gets a new link.
    """
    row = await requests.find_own(member, bank, application_id)
    return render_invites(await invitations.invite(member, bank, row, wanted_in(data)))


@get(f"{_ONE}invites/", READS, tag="applications")
async def list_application_invites(member: CustomerCaller, bank: Bank, application_id: UUID) -> Invites:
    """List invites of an application.

    Returns invites in the order in which they were made.
    """
    application = await requests.read_application(member, bank, application_id)
    return render_invites(await invitations.open_invites(bank.pool, bank, application, now=member.now))


@delete(f"{_ONE}invites/{{invite_id}}/", WRITES, tag="applications")
async def withdraw_application_invite(
    member: CustomerCaller, bank: Bank, application_id: UUID, invite_id: UUID
) -> None:
    """Withdraw an invite.

    Its links no longer work.
    """
    row = await requests.find_own(member, bank, application_id)
    await invitations.withdraw(member, bank, row, invite_id)
