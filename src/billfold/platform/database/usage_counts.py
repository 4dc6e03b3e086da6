"""Counts uses against limits in the database: durable, and independent for concurrent callers. Wall time."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection, Db
from billfold.platform.errors import Refused
from billfold.platform.settings.usage_limits import USAGE_LIMITS, forgotten_at

LIMIT_REACHED = "usage-limit-reached"

_COUNT = """
WITH before AS (SELECT expires_at FROM usage_count WHERE subject = $1 AND kind = $2)
INSERT INTO usage_count AS c (subject, kind, used, expires_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (subject, kind) DO UPDATE SET
  used = CASE WHEN c.expires_at > $5 THEN c.used ELSE 0 END + excluded.used, expires_at = excluded.expires_at
RETURNING used, (SELECT expires_at FROM before WHERE expires_at > $5) AS open_at
"""
_LIST = """
SELECT w.kind, coalesce(u.used, 0) AS used, u.expires_at
  FROM unnest($1::uuid[], $2::text[]) AS w(subject, kind)
  LEFT JOIN usage_count u ON u.subject = w.subject AND u.kind = w.kind AND u.expires_at > $3 ORDER BY w.kind
"""
_RETURN = "UPDATE usage_count SET used = greatest(used - $3, 0) WHERE subject = $1 AND kind = $2 AND expires_at > $4"
_FIND = "SELECT used, expires_at FROM usage_count WHERE subject = $1 AND kind = $2 AND expires_at > $3"


async def count_usage(
    conn: Connection,
    limits: Mapping[str, int],
    uses: Mapping[tuple[str, UUID], int],
    wall: datetime,
    *,
    code: str = LIMIT_REACHED,
) -> None:
    """Count uses, by limit and subject: all of them, or none and Refused `code`.

    They are counted in a fixed order, and kept only if the caller's transaction is.
    """
    async with conn.transaction():
        for (name, subject), more in sorted(uses.items()):
            if not more:
                continue
            forgotten = forgotten_at(name, wall)
            counted = await conn.fetchrow(_COUNT, subject, name, more, forgotten, wall)
            assert counted is not None
            if counted["used"] > limits[name]:  # refused uses do not extend the limit
                open_at = counted["open_at"] or forgotten
                raise _refused(limits, name, code, seconds=(open_at - wall).total_seconds())


async def require_left(
    conn: Connection, limits: Mapping[str, int], uses: Mapping[tuple[str, UUID], int], wall: datetime
) -> None:
    """Refuse uses that cannot all be counted, without counting them. Raises Refused."""
    attempt = conn.transaction()
    await attempt.start()
    try:
        await count_usage(conn, limits, uses, wall)
    finally:
        await attempt.rollback()


async def return_usage(conn: Connection, uses: Mapping[tuple[str, UUID], int], wall: datetime) -> None:
    """Take back uses that were counted for what was not done."""
    await conn.executemany(_RETURN, [(subject, name, more, wall) for (name, subject), more in sorted(uses.items())])


async def require_unused(conn: Db, limits: Mapping[str, int], name: str, subject: UUID, wall: datetime) -> None:
    """Refuse a use above its limit, without counting it. Raises Refused."""
    found = await conn.fetchrow(_FIND, subject, name, wall)
    if found is not None and found["used"] >= limits[name]:
        raise _refused(limits, name, LIMIT_REACHED, seconds=(found["expires_at"] - wall).total_seconds())


async def list_usage(conn: Db, subjects: Mapping[str, UUID], wall: datetime) -> list[tuple[str, int, datetime | None]]:
    """Return what is used of each limit by its subject, and until when it counts; None for nothing."""
    return [tuple(row) for row in await conn.fetch(_LIST, list(subjects.values()), list(subjects), wall)]


def limit_text(name: str, most: int) -> str:
    """Return a limit in words."""
    what, whose = name.replace("_", " ").split(".")
    return f"{most} {what} per {whose}"


async def forget_usage(conn: Db, name: str, subject: UUID) -> None:
    """Reset the count: the last of the tries was right."""
    await conn.execute("DELETE FROM usage_count WHERE subject = $1 AND kind = $2", subject, name)


def hashed_subject(vault: Vault, text: str, purpose: str) -> UUID:
    """Return the subject for a text; nothing stored reveals the text."""
    return UUID(bytes=vault.blind_index(text, purpose)[-16:])


def _refused(limits: Mapping[str, int], name: str, code: str, *, seconds: float) -> Refused:
    detail = f"Limit reached: {limit_text(name, limits.get(name, USAGE_LIMITS[name]))}. Try again later."
    return Refused(code, detail, limit=name, retry_after_seconds=int(seconds) + 1)
