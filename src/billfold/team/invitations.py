"""Invitations into a team: sent, renewed, cancelled and accepted.

A user who can sign in accepts with that account. Everybody else chooses a password in the same step.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg
import msgspec
from asyncpg import Record

from billfold.approvals.authorization_requests import request_change
from billfold.approvals.types import AuthorizationRequestRow
from billfold.audit import record
from billfold.audit.record import AuditedAction
from billfold.audit.rules import NewEntry
from billfold.events.email import outbox, templates
from billfold.events.notifications import notify
from billfold.identity.members import rules
from billfold.identity.members import store as member_store
from billfold.identity.members.rules import Invitation, InviteMember, Member
from billfold.identity.members.store import get_member
from billfold.identity.users import email_links, passwords
from billfold.identity.users import store as user_store
from billfold.identity.users.contact_details import COLUMNS, INVITATIONS, USERS, has_email
from billfold.identity.users.rules import User, UserRole, normalize_email
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform import crypto, ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.errors import NotFound, Refused
from billfold.team.administrator import Administrator, audited, check_grant, notify_administrators

_IS_VALID = """i.expires_at > $2 AND i.link_expires_at > $3 AND i.member_id IN (
  SELECT member_id FROM invitation WHERE link_hash = $1
   UNION ALL SELECT member_id FROM earlier_link WHERE link_hash = $1 AND expires_at > $3)"""
_INVITATION = """i.member_id, i.customer_id, c.name AS customer_name, i.first_name, i.last_name, i.email,
       i.phone_number, i.role"""
_FIND = f"SELECT {_INVITATION} FROM invitation i JOIN customer c USING (customer_id) WHERE {_IS_VALID}"
_CONSUME = f"""
DELETE FROM invitation i USING customer c WHERE c.customer_id = i.customer_id AND {_IS_VALID} RETURNING {_INVITATION}
"""
_VERIFY_EMAIL = """
UPDATE user_account SET email_verified_at = coalesce(email_verified_at, $2) WHERE user_id = $1
"""


async def find_invitation(conn: Db, vault: Vault, secret: str, *, now: datetime, wall: datetime) -> Invitation | None:
    """Return the invitation of a link while it is valid; viewing does not consume it."""
    row = await conn.fetchrow(_FIND, crypto.hash_token(secret), now, wall)
    return None if row is None else _open(row, vault)


class InvitationAcceptance(NamedTuple):
    """The person who opens a mailed link: its secret, their name, address and browser, and when.

    `now` is the bank's time, `wall` wall time.
    """

    secret: str
    origin: Origin
    vault: Vault
    now: datetime
    wall: datetime


async def redeem_invitation(conn: Connection, acceptance: InvitationAcceptance, user: User) -> UUID | None:
    """Make the user to whom the link was mailed a member; None if the link is used or expired.

    Raises Refused `forbidden` when it was sent to another address.
    """
    async with conn.transaction():
        invitation = await _consume_link(conn, acceptance)
        if invitation is None:
            return None
        if invitation.email != user.email:
            raise Refused("forbidden", "This invitation was mailed to another address.")
        return await _add_member(conn, acceptance, invitation, user=user)


async def accept_as_new_user(
    conn: Connection, acceptance: InvitationAcceptance, *, first_name: str, last_name: str, password_hash: str
) -> User | None:
    """Create a user with a password for the holder of the link, and make them a member; None as above.

    An existing user without a password gets it here and keeps their name. Raises
    InvalidInput, Refused `forbidden` when they have one, `member-shut-out`.
    """
    async with conn.transaction():
        invitation = await _consume_link(conn, acceptance)
        if invitation is None:
            return None
        existing = await user_store.find_user_by_email(conn, acceptance.vault, invitation.email)
        if existing is not None and await passwords.find_password_hash(conn, existing.user_id):
            raise Refused("forbidden", "An account already exists: sign in to accept.")
        user_id = (
            existing.user_id
            if existing
            else await _create_user(conn, acceptance, invitation, first_name=first_name, last_name=last_name)
        )
        await passwords.set_password(conn, user_id, password_hash, now=acceptance.wall)
        user = await user_store.find_user(conn, acceptance.vault, user_id)
        assert user is not None
        await _add_member(conn, acceptance, invitation, user=user)
        return user


async def _consume_link(conn: Connection, acceptance: InvitationAcceptance) -> Invitation | None:
    found = await conn.fetchrow(_FIND, crypto.hash_token(acceptance.secret), acceptance.now, acceptance.wall)
    if found is None:
        return None
    await member_store.keep_former(conn, found["customer_id"], [found["member_id"]], now=acceptance.now)
    row = await conn.fetchrow(_CONSUME, crypto.hash_token(acceptance.secret), acceptance.now, acceptance.wall)
    return None if row is None else _open(row, acceptance.vault)


def _open(row: Record, vault: Vault) -> Invitation:
    return msgspec.convert(INVITATIONS.open(vault, row["member_id"], row), Invitation)


async def _add_member(
    conn: Connection, acceptance: InvitationAcceptance, invitation: Invitation, *, user: User
) -> UUID:
    """Make the user a member, notify the administrators, and record it under the new member id."""
    customer_id, role = invitation.customer_id, invitation.role
    await conn.execute(_VERIFY_EMAIL, user.user_id, acceptance.wall)
    member_id = await member_store.add_member(
        conn, customer_id, user.user_id, role=role, now=acceptance.now, member_id=invitation.member_id
    )
    await notify.notify(
        conn,
        acceptance.vault,
        customer_id,
        kind="TEAM_MEMBER_CHANGED",
        title="Somebody joined the team",
        description=f"{user.name} ({user.email}) joined as {role.title()}.",
        metadata={"member_id": member_id},
        now=acceptance.wall,
        except_user_id=user.user_id,
    )
    entry = NewEntry(
        customer_id=customer_id,
        origin=msgspec.structs.replace(acceptance.origin, name=user.name, member_id=member_id),
        action="member.joined",
        resource_type="member",
        resource_id=member_id,
        details={"role": role},
    )
    await record.record(conn, acceptance.vault, entry, now=acceptance.wall)
    return member_id


async def _create_user(
    conn: Connection, acceptance: InvitationAcceptance, invitation: Invitation, *, first_name: str, last_name: str
) -> UUID:
    try:
        return await member_store.create_user(
            conn,
            acceptance.vault,
            email=invitation.email,
            first_name=first_name,
            last_name=last_name,
            phone_number=invitation.phone_number,
            now=acceptance.wall,
        )
    except Refused:
        raise Refused("member-shut-out", "This account was shut by the operator of the bank.") from None


async def send_password_link(bank: Bank, conn: Connection, user_id: UUID) -> str:
    """Queue the e-mail with the link, and return the link."""
    user = await user_store.find_user(conn, bank.vault, user_id)
    assert user is not None
    members = await user_store.list_user_memberships(conn, user_id)
    secret = await email_links.create_link(conn, user_id, "welcome", now=wall_now())
    link = f"{bank.settings.auth_origin}/password?link={secret}"
    company = members[0].customer_name if members else bank.settings.bank_name
    notice = templates.welcome(user, company, link)
    await outbox.queue_email(conn, bank.vault, user.email, notice=notice, now=wall_now())
    return link


_IS_KNOWN = f"""
SELECT true FROM membership m JOIN user_account p USING (user_id) WHERE m.customer_id = $1 AND {has_email("$2", "$4")}
 UNION ALL
SELECT true FROM invitation WHERE customer_id = $1 AND {has_email("$3", "$4")} AND expires_at > $5
"""
_OF_ADDRESS = f"""FROM invitation WHERE customer_id = $1 AND {has_email("$2", "$3")}
   AND ($4::timestamptz IS NULL OR expires_at <= $4)"""
_INVITE = f"""
INSERT INTO invitation (member_id, customer_id, created_at, expires_at, link_hash, link_expires_at,
                        first_name, last_name, role, {COLUMNS})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
"""
_KEEP_LINK = """
INSERT INTO earlier_link (link_hash, member_id, expires_at)
SELECT link_hash, member_id, link_expires_at FROM invitation WHERE customer_id = $1 AND member_id = $2 FOR UPDATE
"""
_RENEW = """
UPDATE invitation SET expires_at = $3, link_hash = $4, link_expires_at = $5
 WHERE customer_id = $1 AND member_id = $2 RETURNING true
"""
_CANCEL = "DELETE FROM invitation WHERE customer_id = $1 AND member_id = $2 RETURNING true"
_ALREADY_INVITED = "There is a member, or an open invitation, with this address already."


async def invite(
    by: Administrator, wanted: InviteMember, *, member_id: UUID | None = None
) -> Member | AuthorizationRequestRow:
    """Invite a user by e-mail, or request it if a rule requires approvals. An expired invitation is replaced.

    `member_id` is generated if omitted. The answer does not reveal whether the address has an account. Raises
    InvalidInput, Refused `member-already-invited`, `forbidden`.
    """
    wanted = rules.check_invited(wanted)
    member_id = member_id or ids.new()
    details = {"email": wanted.email, "role": wanted.role}
    async with audited(by, "member.invited", ("member", member_id), **details) as audited_action:
        terms = await check_grant(audited_action, by, rules.permissions_of(wanted.role))
        if await _is_known(audited_action.conn, by, wanted.email):
            raise Refused("member-already-invited", _ALREADY_INVITED)
        if terms is None:
            return await _invite(audited_action, by, wanted, member_id=member_id)
        audited_action.skip()
    change = {"invited": msgspec.to_builtins(wanted)}
    return await request_change(by, "member.invite", ("member", None), change=change, terms=terms)


async def resend_invitation(
    by: Administrator, member_id: UUID, *, role: UserRole | None = None
) -> Member | AuthorizationRequestRow:
    """Mail a new link for seven days more; those before stay valid as well, each for its own seven days.

    An expired one is given again: that is requested where a rule requires approvals, for this `role`. Raises NotFound,
    Refused `invite-not-pending`, `forbidden`, `content-changed` when the invitation is for another role.
    """
    async with audited(by, "invite.resent", ("member", member_id)) as audited_action:
        invited = await get_member(audited_action.conn, by.vault, by.customer_id, member_id=member_id, now=by.now)
        if invited.invite_expires_at is None:
            raise _not_pending(invited)
        if role not in {None, invited.role}:
            raise Refused("content-changed", "The invitation has changed since the request. Send a new request.")
        terms = await check_grant(audited_action, by, rules.permissions_of(invited.role))
        if terms is None or invited.status == "PENDING":
            return await _renew(audited_action, by, invited)
        audited_action.skip()
    change = {"email": invited.email, "role": invited.role}
    return await request_change(by, "member.reinvite", ("member", member_id), change=change, terms=terms)


async def cancel_invitation(by: Administrator, member_id: UUID) -> Member:
    """Cancel an invitation and return it as it was; the address is then as if never invited.

    Raises NotFound, Refused `invite-not-pending`.
    """
    async with audited(by, "invite.cancelled", ("member", member_id)) as audited_action:
        conn = audited_action.conn
        invited = await get_member(conn, by.vault, by.customer_id, member_id=member_id, now=by.now)
        if invited.invite_expires_at is None:
            raise _not_pending(invited)
        await member_store.keep_former(conn, by.customer_id, [member_id], now=by.now)
        if not await conn.fetchval(_CANCEL, by.customer_id, member_id):
            raise NotFound("There is no such invitation.")
        description = f"{by.name} took back the invitation of {invited.name} ({invited.email})."
        await notify_administrators(
            audited_action, by, "TEAM_MEMBER_CHANGED", title="An invitation was cancelled", description=description
        )
    return invited


async def delete_invitation(
    conn: Connection, vault: Vault, customer_id: UUID, *, email: str, now: datetime, expired_by: datetime | None = None
) -> None:
    """Delete an obsolete invitation: the operator has made its user a member, or it has expired."""
    values = (customer_id, INVITATIONS.indexes(vault, email), normalize_email(email), expired_by)
    gone = [row["member_id"] for row in await conn.fetch(f"SELECT member_id {_OF_ADDRESS}", *values)]
    if gone:
        await member_store.keep_former(conn, customer_id, gone, now=now)
        await conn.execute(f"DELETE {_OF_ADDRESS}", *values)


async def _is_known(conn: Connection, by: Administrator, email: str) -> bool:
    """Return whether an address belongs to a member, active or not, or to an open invitation."""
    indexes = (USERS.indexes(by.vault, email), INVITATIONS.indexes(by.vault, email))
    return await conn.fetchval(_IS_KNOWN, by.customer_id, *indexes, email, by.now) is True


async def _invite(audited_action: AuditedAction, by: Administrator, wanted: InviteMember, *, member_id: UUID) -> Member:
    conn = audited_action.conn
    await delete_invitation(conn, by.vault, by.customer_id, email=wanted.email, now=by.now, expired_by=by.now)
    secret, link_hash = crypto.new_token()
    try:
        await conn.execute(
            _INVITE,
            member_id,
            by.customer_id,
            by.now,
            by.now + rules.INVITATION_LIFETIME,
            link_hash,
            by.wall + rules.INVITATION_LIFETIME,
            wanted.first_name,
            wanted.last_name,
            wanted.role,
            *INVITATIONS.seal(by.vault, member_id, wanted.email, phone_number=wanted.phone_number),
        )
    except asyncpg.UniqueViolationError:
        raise Refused("member-already-invited", _ALREADY_INVITED) from None
    invited = await get_member(conn, by.vault, by.customer_id, member_id=member_id, now=by.now)
    await _send_link(conn, by, invited, secret=secret)
    description = f"{by.name} invited {invited.name} ({invited.email}) as {invited.role.title()}."
    await notify_administrators(
        audited_action, by, "TEAM_MEMBER_CHANGED", title="Somebody was invited into the team", description=description
    )
    return invited


async def _renew(audited_action: AuditedAction, by: Administrator, invited: Member) -> Member:
    conn, lifetime = audited_action.conn, rules.INVITATION_LIFETIME
    secret, link_hash = crypto.new_token()
    key = (by.customer_id, invited.member_id)
    await member_store.keep_former(conn, by.customer_id, [invited.member_id], now=by.now)
    await conn.execute(_KEEP_LINK, *key)
    if not await conn.fetchval(_RENEW, *key, by.now + lifetime, link_hash, by.wall + lifetime):
        raise NotFound("There is no such invitation.")
    await _send_link(conn, by, invited, secret=secret)
    return await get_member(conn, by.vault, by.customer_id, member_id=invited.member_id, now=by.now)


async def _send_link(conn: Connection, by: Administrator, invited: Member, secret: str) -> None:
    assert invited.email is not None
    mailbox = outbox.mailbox_of(by.vault, invited.email)
    uses = {("invitations.recipient", mailbox): 1, ("invitations.sender", by.customer_id): 1}
    await count_usage(conn, by.limits, uses, by.wall, code="invite-limit-reached")
    link = f"{by.pages}/invitation?link={secret}"
    notice = templates.invitation(invited.first_name, by.customer_name, by.name, role=invited.role, link=link)
    await outbox.queue_email(conn, by.vault, invited.email, notice=notice, now=by.wall)


def _not_pending(member: Member) -> Refused:
    return Refused("invite-not-pending", f"{member.name} is no longer invited: {member.status}.")
