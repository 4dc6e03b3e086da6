"""Mailed links of invites are opened: a browser gets a cookie of its own instead, and the link may be opened again."""

from datetime import datetime
from uuid import UUID

from billfold.ledger.bank import Bank
from billfold.onboarding.invites import rules, store
from billfold.onboarding.invites.rules import InviteRow
from billfold.platform import crypto


async def open_link(bank: Bank, secret: str, *, wall: datetime) -> tuple[InviteRow, str] | None:
    """Return the invite that a link opens, and the secret for a new cookie; None when it opens nothing any longer."""
    row = await store.find_by_link(bank.pool, crypto.hash_token(secret), now=await bank.now(), wall=wall)
    if row is None:
        return None
    cookie, session_hash = crypto.new_token()
    await store.open_session(bank.pool, session_hash, row.invite_id, wall=wall, ends_at=wall + rules.SESSION_LIFETIME)
    return row, cookie


async def find_invite(bank: Bank, invite_id: UUID, cookie: str, *, wall: datetime) -> InviteRow | None:
    """Return the invite that a browser has opened, and put off the idle end of that; None when it has ended."""
    session_hash = crypto.hash_token(cookie)
    row = await store.find_by_session(
        bank.pool,
        session_hash,
        invite_id,
        now=await bank.now(),
        wall=wall,
        idle_since=wall - rules.SESSION_IDLE_LIMIT,
    )
    if row is not None:
        await store.touch_session(bank.pool, session_hash, wall)
    return row


async def leave(bank: Bank, cookie: str) -> None:
    """End what a cookie opens."""
    await store.end_session(bank.pool, crypto.hash_token(cookie))
