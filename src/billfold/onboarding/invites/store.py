"""Rows of invites, of their browser sessions, and of drafts."""

from datetime import datetime
from uuid import UUID

from billfold.audit.record import AuditedAction, AuditedTable
from billfold.ledger.bank import Bank
from billfold.onboarding.applications.types import ApplicationRow
from billfold.onboarding.invites import rules
from billfold.onboarding.invites.rules import InviteRow
from billfold.platform import crypto
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import NotFound

TABLE = "application_invite"
_invites = AuditedTable(InviteRow, TABLE, key=("invite_id",), noun="invite")
_COLUMNS = _invites.columns("i")
_RENEWED = set(InviteRow.__struct_fields__) - {"customer_id", "invite_id", "application_id", "created_at"}
_RENEW = f"""
ON CONFLICT (invite_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in sorted(_RENEWED))}
"""
_DELETE = "DELETE FROM application_invite WHERE customer_id = $1 AND application_id = $2 AND invite_id = $3 RETURNING 1"
_OF_APPLICATION = f"""
SELECT {_COLUMNS} FROM application_invite i WHERE customer_id = $1 AND application_id = $2 ORDER BY written_no
"""
_OPEN = f"""
WITH i AS MATERIALIZED (
  SELECT {_COLUMNS} FROM application_invite i WHERE i.expires_at > $2 AND i.link_expires_at > $3 AND {{condition}}
), p AS MATERIALIZED (
  SELECT application_id, related_party_id FROM related_party_application
   WHERE customer_id = ANY(ARRAY(SELECT customer_id FROM i))
     AND application_id = ANY(ARRAY(SELECT application_id FROM i)))
SELECT * FROM i WHERE related_party_id IS NULL OR (application_id, related_party_id) IN (SELECT * FROM p)
"""
_BY_LINK = _OPEN.format(
    condition="""i.invite_id IN (
  SELECT invite_id FROM application_invite WHERE link_hash = $1
   UNION ALL SELECT invite_id FROM earlier_link WHERE link_hash = $1 AND expires_at > $3)"""
)
_KEEP_LINK = """
INSERT INTO earlier_link (link_hash, invite_id, expires_at)
SELECT link_hash, invite_id, link_expires_at FROM application_invite WHERE invite_id = $1
"""
_BY_SESSION = _OPEN.format(
    condition="""i.invite_id = $4 AND EXISTS (
  SELECT 1 FROM invite_session s
   WHERE s.session_hash = $1 AND s.invite_id = $4 AND s.ends_at > $3 AND s.last_seen_at > $5)"""
)
_OPEN_SESSION = """
INSERT INTO invite_session (session_hash, invite_id, last_seen_at, ends_at) VALUES ($1, $2, $3, $4)
"""
_TOUCH = "UPDATE invite_session SET last_seen_at = $2 WHERE session_hash = $1"
_PUT_DRAFT = """
INSERT INTO invite_draft (invite_id, step, content) VALUES ($1, $2, $3)
ON CONFLICT (invite_id, step) DO UPDATE SET content = excluded.content
"""


async def list_invites(conn: Db, application: ApplicationRow) -> list[InviteRow]:
    """Return the invites of an application, in order of creation."""
    return await _invites.all(conn, _OF_APPLICATION, application.customer_id, application.application_id)


async def put_invite(action: AuditedAction, row: InviteRow) -> None:
    """Insert or update an invite."""
    await _invites.add(action, row, _RENEW)


async def delete_invite(action: AuditedAction, application: ApplicationRow, invite_id: UUID) -> None:
    """Remove an invite, which invalidates its links and sessions. Raises NotFound."""
    key = (application.customer_id, application.application_id, invite_id)
    if await action.conn.fetchval(_DELETE, *key) is None:
        raise NotFound("There is no such invite.")
    action.proves(TABLE, invite_id, None)


async def find_by_link(conn: Db, link_hash: bytes, *, now: datetime, wall: datetime) -> InviteRow | None:
    """Return the invite of a link while it is valid."""
    return await _invites.first(conn, _BY_LINK, link_hash, now, wall)


async def find_by_session(
    conn: Db, session_hash: bytes, invite_id: UUID, *, now: datetime, wall: datetime, idle_since: datetime
) -> InviteRow | None:
    """Return this invite, if a browser has opened it and was active after `idle_since`."""
    return await _invites.first(conn, _BY_SESSION, session_hash, now, wall, invite_id, idle_since)


async def open_session(conn: Db, session_hash: bytes, invite_id: UUID, *, wall: datetime, ends_at: datetime) -> None:
    """Record that a browser has opened an invite."""
    await conn.execute(_OPEN_SESSION, session_hash, invite_id, wall, ends_at)


async def touch_session(conn: Db, session_hash: bytes, wall: datetime) -> None:
    """Extend the idle timeout of a session."""
    await conn.execute(_TOUCH, session_hash, wall)


async def end_session(conn: Db, session_hash: bytes) -> None:
    """End the session of a browser."""
    await conn.execute("DELETE FROM invite_session WHERE session_hash = $1", session_hash)


async def end_sessions(conn: Connection, invite_id: UUID) -> None:
    """End the sessions of all browsers that opened an invite."""
    await conn.execute("DELETE FROM invite_session WHERE invite_id = $1", invite_id)


async def keep_link(conn: Connection, invite_id: UUID) -> None:
    """Keep the newest link of an invite valid together with the one that replaces it."""
    await conn.execute(_KEEP_LINK, invite_id)


async def end_earlier_links(conn: Connection, invite_id: UUID) -> None:
    """Invalidate all links of an invite except the newest."""
    await conn.execute("DELETE FROM earlier_link WHERE invite_id = $1", invite_id)


async def list_drafts(conn: Db, invite_id: UUID) -> dict[str, bytes]:
    """Return drafts by step, sealed."""
    rows = await conn.fetch("SELECT step, content FROM invite_draft WHERE invite_id = $1", invite_id)
    return {row["step"]: row["content"] for row in rows}


async def put_draft(conn: Db, invite_id: UUID, step: str, content: bytes | None) -> None:
    """Store the sealed draft of a step; None deletes it."""
    if content is None:
        await conn.execute("DELETE FROM invite_draft WHERE invite_id = $1 AND step = $2", invite_id, step)
    else:
        await conn.execute(_PUT_DRAFT, invite_id, step, content)


async def open_link(bank: Bank, secret: str, *, wall: datetime) -> tuple[InviteRow, str] | None:
    """Return the invite that a link opens, and the secret for a new cookie; None if the link is not valid."""
    row = await find_by_link(bank.pool, crypto.hash_token(secret), now=await bank.now(), wall=wall)
    if row is None:
        return None
    cookie, session_hash = crypto.new_token()
    await open_session(bank.pool, session_hash, row.invite_id, wall=wall, ends_at=wall + rules.SESSION_LIFETIME)
    return row, cookie


async def find_invite(bank: Bank, invite_id: UUID, cookie: str, *, wall: datetime) -> InviteRow | None:
    """Return the invite that a browser has opened, and extend the session's idle timeout; None if it has ended."""
    session_hash = crypto.hash_token(cookie)
    row = await find_by_session(
        bank.pool, session_hash, invite_id, now=await bank.now(), wall=wall, idle_since=wall - rules.SESSION_IDLE_LIMIT
    )
    if row is not None:
        await touch_session(bank.pool, session_hash, wall)
    return row


async def leave(bank: Bank, cookie: str) -> None:
    """End the session of a cookie."""
    await end_session(bank.pool, crypto.hash_token(cookie))
