"""The change of the master key: data keys are wrapped again, a few at a time, while the bank is in use.

Personal data stays as it is. A rotation may be stopped and begun again: it takes the keys that are not wrapped by the
current master key.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from uuid import UUID

from billfold.data_keys import store
from billfold.data_keys.ports import MasterKey, WrappedKey
from billfold.platform.database.claims import claimed
from billfold.platform.database.connection import Pool
from billfold.platform.errors import InvariantError

_CLAIM = "data_keys.rotation"
_BATCH_SIZE = 200


class RotationProgress(NamedTuple):
    """How far a rotation is: keys wrapped again, keys that cannot be unwrapped, and how many there were to do."""

    done: int
    damaged: tuple[UUID, ...]
    total: int


@asynccontextmanager
async def rotation(pool: Pool, master: MasterKey) -> AsyncIterator[AsyncIterator[RotationProgress] | None]:
    """Have the rotation to oneself: None while another process rotates."""
    async with claimed(pool, _CLAIM) as is_ours:
        yield _rotate(pool, master) if is_ours else None


async def _rotate(pool: Pool, master: MasterKey) -> AsyncIterator[RotationProgress]:
    total = await store.count_not_wrapped_by(pool, master.name)
    progress, after = RotationProgress(0, (), total), UUID(int=0)
    yield progress
    while rows := await store.list_not_wrapped_by(pool, master.name, after, _BATCH_SIZE):
        for subject_id, stored in rows:
            done = await _rewrap(pool, master, subject_id, stored=stored)
            if done is None:
                progress = progress._replace(damaged=(*progress.damaged, subject_id))
            else:
                progress = progress._replace(done=progress.done + done)
        after = rows[-1][0]
        yield progress


async def _rewrap(pool: Pool, master: MasterKey, subject_id: UUID, *, stored: WrappedKey) -> int | None:
    """Return how many keys were wrapped again; None for one that does not unwrap."""
    try:
        key = await master.unwrap(subject_id, stored)
    except InvariantError:
        return None
    # One that was destroyed in the meantime stays destroyed.
    return int(await store.replace_wrapped(pool, subject_id, stored, await master.wrap(subject_id, key)))
