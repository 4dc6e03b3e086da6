"""Accepting an invitation: the holder of the mailed link joins the team, once.

A user who can sign in does so, and accepts with that account. Everybody else chooses a
password in the same step.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
from asyncpg import Record

from billfold.audit import record as audit_record
from billfold.audit.rules import NewEntry
from billfold.events.notifications import notify as notification_notify
from billfold.identity.members import store as user_members
from billfold.identity.members.rules import Invitation
from billfold.identity.users import passwords
from billfold.identity.users import store as user_store
from billfold.identity.users.contact_details import INVITATIONS
from billfold.identity.users.rules import User
from billfold.ledger.types import Origin
from billfold.platform import crypto
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.errors import Refused

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


async def find_invitation(
    conn: Connection | Pool, vault: Vault, secret: str, *, now: datetime, wall: datetime
) -> Invitation | None:
    """Return what a link invites to while it is good; looking does not use it up."""
    row = await conn.fetchrow(_FIND, crypto.hash_token(secret), now, wall)
    return None if row is None else _open(row, vault)


class InvitationAcceptance(NamedTuple):
    """Whoever opens a mailed link: its secret, their name, address and browser, and when.

    `now` is the bank's time, `wall` wall time.
    """

    secret: str
    origin: Origin
    vault: Vault
    now: datetime
    wall: datetime


async def redeem_invitation(conn: Connection, acceptance: InvitationAcceptance, user: User) -> UUID | None:
    """Make the user to whom the link was mailed a member; None when it is used or expired.

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
    """Create a user with a password for the holder of the link, and make them a member; None as `accept`.

    A user who is known but never had a password gets it here and keeps their name. Raises
    InvalidInput, Refused `forbidden` when they have one, `member-shut-out`.
    """
    async with conn.transaction():
        invitation = await _consume_link(conn, acceptance)
        if invitation is None:
            return None
        existing = await user_store.find_user_by_email(conn, acceptance.vault, invitation.email)
        if existing is not None and await passwords.find_password_hash(conn, existing.user_id):
            raise Refused("forbidden", "There is an account already: sign in to accept.")
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
    member_id = await user_members.add_member(
        conn, customer_id, user.user_id, role=role, now=acceptance.now, member_id=invitation.member_id
    )
    await notification_notify.notify(
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
    await audit_record.record(conn, acceptance.vault, entry, now=acceptance.wall)
    return member_id


async def _create_user(
    conn: Connection, acceptance: InvitationAcceptance, invitation: Invitation, *, first_name: str, last_name: str
) -> UUID:
    try:
        return await user_members.create_user(
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
