"""Sign-in sessions: a random cookie, stored as a hash, and replaced whenever more is proved.

A session ends 30 minutes after it was last seen and 12 hours after it began. `now` is wall time.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from billfold.identity.users import rules
from billfold.identity.users.rules import AuthMethod, ClientInfo
from billfold.platform import crypto, ids
from billfold.platform.database.connection import Db

_TOUCH_INTERVAL = timedelta(minutes=1)

_OPEN = """
INSERT INTO session (session_hash, session_id, user_id, auth_methods, complete, authenticated_at, started_at,
                     last_seen_at, ends_at, address, device)
VALUES ($1, $2, $3, $4, $5, $6, $6, $6, $7, $8, $9)
"""
_COMPLETE = """
UPDATE session SET session_hash = $2, auth_methods = auth_methods || $3::text[], complete = true,
       authenticated_at = $4, started_at = $4, last_seen_at = $4, ends_at = $5
 WHERE session_hash = $1 AND NOT complete AND ends_at > $4 RETURNING user_id
"""
_REAUTHENTICATE = """
UPDATE session SET session_hash = $2, authenticated_at = $4, last_seen_at = $4,
       auth_methods = array(SELECT DISTINCT p FROM unnest(auth_methods || $3::text[]) p)
 WHERE session_hash = $1 AND complete AND ends_at > $4 RETURNING user_id
"""
_REMEMBER_DEVICE = """
INSERT INTO known_device (device_hash, user_id, last_seen_at) VALUES ($1, $2, $3)
ON CONFLICT (user_id, device_hash) DO UPDATE SET last_seen_at = excluded.last_seen_at
RETURNING xmax = 0 AND EXISTS (SELECT 1 FROM known_device WHERE user_id = $2)
"""

_IS_KNOWN_DEVICE = "SELECT true FROM known_device WHERE device_hash = $1 AND user_id = $2"


async def open_session(
    conn: Db,
    user_id: UUID,
    *,
    auth_methods: Sequence[AuthMethod],
    complete: bool,
    client_info: ClientInfo,
    now: datetime,
) -> str:
    """Sign a user in and return the cookie; an incomplete session lasts ten minutes."""
    cookie, session_hash = crypto.new_token()
    lifetime = rules.SESSION_LIFETIME if complete else rules.FIRST_FACTOR_SESSION_LIFETIME
    await conn.execute(
        _OPEN,
        session_hash,
        ids.new(),
        user_id,
        list(auth_methods),
        complete,
        now,
        now + lifetime,
        client_info.address,
        client_info.device,
    )
    if complete:
        await _record_login(conn, user_id, now)
    return cookie


async def complete_session(conn: Db, session_hash: bytes, *, auth_methods: AuthMethod, now: datetime) -> str | None:
    """Complete a session after its second factor and return its new cookie; None if it ended."""
    cookie, new_hash = crypto.new_token()
    user_id = await conn.fetchval(_COMPLETE, session_hash, new_hash, [auth_methods], now, now + rules.SESSION_LIFETIME)
    if user_id is None:
        return None
    await _record_login(conn, user_id, now)
    return cookie


async def reauthenticate(conn: Db, session_hash: bytes, *, auth_methods: AuthMethod, now: datetime) -> str | None:
    """Record that a user has just authenticated and return the new cookie; None if it ended."""
    cookie, new_hash = crypto.new_token()
    found = await conn.fetchval(_REAUTHENTICATE, session_hash, new_hash, [auth_methods], now)
    return None if found is None else cookie


async def touch_session(conn: Db, session_hash: bytes, now: datetime) -> None:
    """Extend the idle time of a session. Written once a minute at most."""
    await conn.execute(
        "UPDATE session SET last_seen_at = $2 WHERE session_hash = $1 AND last_seen_at < $3",
        session_hash,
        now,
        now - _TOUCH_INTERVAL,
    )


async def end_session(conn: Db, session_hash: bytes) -> UUID | None:
    """Sign out and return the session's id, or None when there was none."""
    ended: UUID | None = await conn.fetchval(
        "DELETE FROM session WHERE session_hash = $1 RETURNING session_id", session_hash
    )
    return ended


async def end_one_session(conn: Db, user_id: UUID, session_id: UUID) -> bool:
    """End one of a user's sessions; return whether it was theirs."""
    ended = await conn.fetchval(
        "DELETE FROM session WHERE user_id = $1 AND session_id = $2 RETURNING true", user_id, session_id
    )
    return ended is True


async def end_sessions(conn: Db, user_id: UUID, *, except_session_id: UUID | None = None) -> list[UUID]:
    """End all sessions of a user, or all but one, and return their ids."""
    rows = await conn.fetch(
        "DELETE FROM session WHERE user_id = $1 AND session_id IS DISTINCT FROM $2 RETURNING session_id",
        user_id,
        except_session_id,
    )
    return [row["session_id"] for row in rows]


async def remember_device(conn: Db, user_id: UUID, device: str, now: datetime) -> bool:
    """Remember a browser by its lasting cookie; True if it is new and not the user's first."""
    return await conn.fetchval(_REMEMBER_DEVICE, crypto.hash_token(device), user_id, now) is True


async def is_known_device(conn: Db, user_id: UUID, device: str) -> bool:
    """Tell whether a user has signed in with the browser of this lasting cookie."""
    return await conn.fetchval(_IS_KNOWN_DEVICE, crypto.hash_token(device), user_id) is True


async def _record_login(conn: Db, user_id: UUID, now: datetime) -> None:
    await conn.execute("UPDATE user_account SET last_login_at = $2 WHERE user_id = $1", user_id, now)
