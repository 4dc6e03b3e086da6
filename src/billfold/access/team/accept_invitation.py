"""Accepting an invitation: whoever holds the mailed link joins, once.

A person who can sign in here already does so, and accepts as who he is. Everybody else chooses a
password in the same step.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from billfold.access.team.types import Invitation
from billfold.access.users import members as user_members
from billfold.access.users import passwords
from billfold.access.users import store as user_store
from billfold.access.users.types import Person
from billfold.audit import record as audit_record
from billfold.audit.types import Entry, Origin
from billfold.events.notifications import notify as notification_notify
from billfold.platform import crypto
from billfold.platform.crypto import Vault
from billfold.platform.errors import Refused

if TYPE_CHECKING:
    from billfold.platform.database.pool import Connection, Pool

_OPENS = "link_hash = $1 AND expires_at > $2 AND link_expires_at > $3"
_FIND = f"""
SELECT i.member_id, i.customer_id, c.name AS customer_name, i.first_name, i.last_name, i.email,
       i.phone_number, i.role
  FROM invitation i JOIN customer c USING (customer_id) WHERE {_OPENS}
"""
_USE = f"DELETE FROM invitation WHERE {_OPENS} RETURNING member_id, customer_id, email, role"
_PROVED = """
UPDATE person SET email_verified_at = coalesce(email_verified_at, $2) WHERE user_id = $1
"""


async def find_invitation(
    conn: Connection | Pool, secret: str, *, now: datetime, wall: datetime
) -> Invitation | None:
    """Return what a link invites to while it is good; looking does not use it up."""
    row = await conn.fetchrow(_FIND, crypto.hash_token(secret), now, wall)
    return None if row is None else msgspec.convert(dict(row), Invitation)


class Bearer(NamedTuple):
    """Whoever opens a mailed link: its secret, whom he says he is and from where, and when.

    `now` is the bank's time, `wall` wall time.
    """

    secret: str
    origin: Origin
    vault: Vault
    now: datetime
    wall: datetime


async def accept(conn: Connection, bearer: Bearer, person: Person) -> UUID | None:
    """Make a person whom the link was mailed to a member; None when it is used up or too old.

    Raises Refused `forbidden` when it was mailed to somebody else.
    """
    async with conn.transaction():
        row = await _use(conn, bearer)
        if row is None:
            return None
        if row["email"] != person.email:
            raise Refused("forbidden", "This invitation was mailed to another address.")
        return await _add(conn, bearer, row, person)


async def join(
    conn: Connection, bearer: Bearer, *, first_name: str, last_name: str, password_hash: str
) -> Person | None:
    """Make whoever holds the link a person with a password, and a member; None as `accept`.

    Somebody who is known but never had a password gets it here and keeps his name. Raises
    InvalidInput, Refused `forbidden` when he has one, `member-shut-out`.
    """
    async with conn.transaction():
        invitation = await find_invitation(conn, bearer.secret, now=bearer.now, wall=bearer.wall)
        row = await _use(conn, bearer)
        if invitation is None or row is None:
            return None
        known = await user_store.find_person_by_email(conn, invitation.email)
        if known is not None and await passwords.find_password_hash(conn, known.user_id):
            raise Refused("forbidden", "There is an account already: sign in to accept.")
        user_id = known.user_id if known else await _enrol(
            conn, invitation, first_name, last_name, bearer.wall
        )  # fmt: skip
        await passwords.set_password(conn, user_id, password_hash, now=bearer.wall)
        person = await user_store.find_person(conn, user_id)
        assert person is not None
        await _add(conn, bearer, row, person)
        return person


async def _use(conn: Connection, bearer: Bearer) -> Any:  # noqa: ANN401 - a record of asyncpg
    hashed = crypto.hash_token(bearer.secret)
    return await conn.fetchrow(_USE, hashed, bearer.now, bearer.wall)


async def _add(
    conn: Connection,
    bearer: Bearer,
    row: Any,  # noqa: ANN401 - as above
    person: Person,
) -> UUID:
    """Make the person a member, tell the administrators, and record it under his new id."""
    customer_id, role = row["customer_id"], row["role"]
    await conn.execute(_PROVED, person.user_id, bearer.wall)
    member_id = await user_members.add_member(
        conn, customer_id, person.user_id, role=role, now=bearer.now, member_id=row["member_id"]
    )
    await notification_notify.notify(
        conn, bearer.vault, customer_id, "TEAM_MEMBER_CHANGED", title="Somebody joined the team",
        description=f"{person.name} ({person.email}) joined as {role.title()}.",
        metadata={"member_id": member_id}, now=bearer.wall, informed=person.user_id,
    )  # fmt: skip
    entry = Entry(
        customer_id=customer_id,
        origin=msgspec.structs.replace(bearer.origin, name=person.name, member_id=member_id),
        action="member.joined",
        resource_type="member",
        resource_id=member_id,
        details={"role": role},
    )
    await audit_record.record(conn, bearer.vault, entry, now=bearer.wall)
    return member_id


async def _enrol(
    conn: Connection, invitation: Invitation, first_name: str, last_name: str, wall: datetime
) -> UUID:
    try:
        return await user_members.enrol_person(
            conn, email=invitation.email, first_name=first_name, last_name=last_name,
            phone_number=invitation.phone_number, now=wall,
        )  # fmt: skip
    except Refused:
        raise Refused(
            "member-shut-out", "This account was shut by the operator of the bank."
        ) from None
