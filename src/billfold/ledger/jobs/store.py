"""Schedules and cancels jobs. An object has one job of a kind."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from billfold.ledger.types import ScheduledJob
from billfold.platform.database.connection import Connection, Pool
from billfold.platform.database.pool import uuid_array

_SCHEDULE = "SELECT scheduled_job_set($1)"
_COMPLETE = "SELECT scheduled_job_complete($1, $2::text::uuid[], $3)"


async def schedule(conn: Connection | Pool, jobs: Iterable[ScheduledJob]) -> None:
    """Schedule these jobs; one that is already scheduled is moved."""
    if made := list(jobs):
        await conn.execute(_SCHEDULE, made)


async def cancel(conn: Connection | Pool, kind: str, *object_ids: UUID) -> None:
    """Cancel the jobs of this kind for these objects, as far as they are scheduled."""
    await conn.execute(_COMPLETE, kind, uuid_array(object_ids), None)


async def complete(conn: Connection | Pool, done: Sequence[ScheduledJob]) -> None:
    """Remove jobs of one kind that were run; one that was moved in the meantime stays."""
    if done:
        objects, instants = uuid_array(each.object_id for each in done), [each.at for each in done]
        await conn.execute(_COMPLETE, done[0].kind, objects, instants)
