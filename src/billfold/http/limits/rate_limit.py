"""What may be asked for only so many times a second, beside the limits of a minute."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from billfold.http.responses import ProblemWithHeaders

if TYPE_CHECKING:
    from billfold.platform.database.pool import Pool

_COUNT = """
INSERT INTO rate_limit_window AS w (caller, kind, starts_at, used) VALUES ($1, $2, $3, 1)
ON CONFLICT (caller, kind, starts_at) DO UPDATE SET used = w.used + 1 RETURNING used
"""


async def count_second(pool: Pool, caller: UUID, kind: str, *, per_second: int, wall: datetime) -> None:
    """Count a request in its second of the wall clock. Raises `rate-limited` beyond the limit."""
    starts_at = wall.replace(microsecond=0)
    used = await pool.fetchval(_COUNT, caller, f"{kind}:second", starts_at)
    if used > per_second:
        limit = f"{per_second} request{'s are' if per_second > 1 else ' is'} let in per second."
        raise ProblemWithHeaders("rate-limited", limit, (b"retry-after", b"1"))
