"""Inviting users into a team, sending the link once more, and taking an invitation back."""

from uuid import UUID

import asyncpg
import msgspec

from billfold.approvals.authorization_requests import request_change
from billfold.approvals.types import AuthorizationRequestRow
from billfold.audit.record import AuditedAction
from billfold.events.email import outbox
from billfold.events.email import templates as notices
from billfold.identity.members import rules
from billfold.identity.members.rules import InviteMember, Member
from billfold.identity.members.store import get_member
from billfold.identity.users.contact_details import COLUMNS, INVITATIONS, USERS, has_email
from billfold.identity.users.rules import UserRole, normalize_email
from billfold.platform import crypto, ids
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection
from billfold.platform.database.usage_counts import count_usage
from billfold.platform.errors import NotFound, Refused
from billfold.team.administrator import Administrator, audited, check_grant, notify_administrators

_IS_KNOWN = f"""
SELECT true FROM membership m JOIN user_account p USING (user_id) WHERE m.customer_id = $1 AND {has_email("$2", "$4")}
 UNION ALL
SELECT true FROM invitation WHERE customer_id = $1 AND {has_email("$3", "$4")} AND expires_at > $5
"""
_DELETE = f"DELETE FROM invitation WHERE customer_id = $1 AND {has_email('$2', '$3')}"
_DELETE_EXPIRED = f"{_DELETE} AND expires_at <= $4"
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
    """Invite a user by e-mail, or request it where a rule requires approvals. An expired invitation is replaced.

    `member_id` is new if it is left out. The answer does not reveal whether the address has an account. Raises
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
    """Mail a new link for seven days more; those before stay valid beside it, each for its own seven days.

    What has expired is given anew: that is requested where a rule requires approvals, for this `role`. Raises NotFound,
    Refused `invite-not-pending`, `forbidden`, `content-changed` when the invitation is into another role.
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
    """Take an invitation back and return it as it was; the address is as if never invited.

    Raises NotFound, Refused `invite-not-pending`.
    """
    async with audited(by, "invite.cancelled", ("member", member_id)) as audited_action:
        conn = audited_action.conn
        invited = await get_member(conn, by.vault, by.customer_id, member_id=member_id, now=by.now)
        if invited.invite_expires_at is None:
            raise _not_pending(invited)
        if not await conn.fetchval(_CANCEL, by.customer_id, member_id):
            raise NotFound("There is no such invitation.")
        description = f"{by.name} took back the invitation of {invited.name} ({invited.email})."
        await notify_administrators(
            audited_action, by, "TEAM_MEMBER_CHANGED", title="An invitation was cancelled", description=description
        )
    return invited


async def delete_invitation(conn: Connection, vault: Vault, customer_id: UUID, *, email: str) -> None:
    """Drop an invitation that is of no use any more: the operator has made its user a member."""
    await conn.execute(_DELETE, customer_id, INVITATIONS.indexes(vault, email), normalize_email(email))


async def _is_known(conn: Connection, by: Administrator, email: str) -> bool:
    """Return whether an address is that of a member, active or not, or of an open invitation."""
    indexes = (USERS.indexes(by.vault, email), INVITATIONS.indexes(by.vault, email))
    return await conn.fetchval(_IS_KNOWN, by.customer_id, *indexes, email, by.now) is True


async def _invite(audited_action: AuditedAction, by: Administrator, wanted: InviteMember, *, member_id: UUID) -> Member:
    conn = audited_action.conn
    await conn.execute(
        _DELETE_EXPIRED, by.customer_id, INVITATIONS.indexes(by.vault, wanted.email), wanted.email, by.now
    )
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
    notice = notices.invitation(invited.first_name, by.customer_name, by.name, role=invited.role, link=link)
    await outbox.queue_email(conn, by.vault, invited.email, notice=notice, now=by.wall)


def _not_pending(member: Member) -> Refused:
    return Refused("invite-not-pending", f"{member.name} is no longer invited: {member.status}.")
