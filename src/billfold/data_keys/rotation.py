"""The change of the master key: data keys are wrapped again, a few at a time, while the bank is in use.

Personal data stays as it is. A rotation can be stopped and resumed: it continues with the keys not wrapped by the
current master key.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from uuid import UUID

from billfold.audit.record import audited
from billfold.data_keys import store
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import MasterKey, WrappedKey
from billfold.ledger.bank import Bank
from billfold.ledger.types import Origin
from billfold.platform.crypto import Vault
from billfold.platform.database.background_work import claimed
from billfold.platform.database.connection import Pool
from billfold.platform.errors import InvariantError

_CLAIM = "data_keys.rotation"
_WRAPPED_AT_ONCE = 200


class RotationProgress(NamedTuple):
    """Progress of a rotation: keys rewrapped, keys that cannot be unwrapped, and the total."""

    done: int
    damaged: tuple[UUID, ...]
    total: int


@asynccontextmanager
async def rotation(pool: Pool, master: MasterKey) -> AsyncIterator[AsyncIterator[RotationProgress] | None]:
    """Lock the rotation: None while another process rotates."""
    async with claimed(pool, _CLAIM) as is_ours:
        yield _rotate(pool, master) if is_ours else None


async def _rotate(pool: Pool, master: MasterKey) -> AsyncIterator[RotationProgress]:
    total = await store.count_not_wrapped_by(pool, master.name)
    progress, after = RotationProgress(0, (), total), UUID(int=0)
    yield progress
    while rows := await store.list_not_wrapped_by(pool, master.name, after, _WRAPPED_AT_ONCE):
        for subject_id, stored in rows:
            done = await _rewrap_keys(pool, master, subject_id, stored=stored)
            if done is None:
                progress = progress._replace(damaged=(*progress.damaged, subject_id))
            else:
                progress = progress._replace(done=progress.done + done)
        after = rows[-1][0]
        yield progress


async def _rewrap_keys(pool: Pool, master: MasterKey, subject_id: UUID, *, stored: WrappedKey) -> int | None:
    """Return how many keys were rewrapped; None for one that does not unwrap."""
    try:
        key = await master.unwrap(subject_id, stored)
    except InvariantError:
        return None
    # One that was destroyed in the meantime stays destroyed.
    return int(await store.replace_wrapped(pool, subject_id, stored, await master.wrap(subject_id, key)))


_RESEALED_AT_ONCE = 500
_ROWS = "SELECT {keys}, sealed FROM {table} WHERE sealed IS NOT NULL AND substring(sealed FOR 5) <> $1 LIMIT {limit}"
_REPLACE = "UPDATE {table} SET sealed = $1 WHERE sealed = $2 AND {match}"


class SecretColumn(NamedTuple):
    """The column `sealed` of a table, its key, and the place of a value from the key's columns."""

    table: str
    keys: tuple[str, ...]
    place: Callable[..., bytes]


async def reseal(pool: Pool, vault: Vault, columns: Sequence[SecretColumn]) -> int:
    """Reseal values under former keys with the current one; return how many values. Raises InvariantError."""
    done = 0
    head = b"\x01" + bytes.fromhex(vault.key_id)
    for column in columns:
        match = " AND ".join(f"{key} = ${number}" for number, key in enumerate(column.keys, start=3))
        keys = ", ".join(column.keys)
        names: dict[str, Any] = {"table": column.table, "keys": keys, "match": match, "limit": _RESEALED_AT_ONCE}
        while rows := await pool.fetch(_ROWS.format(**names), head):
            for *key, sealed in rows:
                place = column.place(*key)
                resealed = vault.seal(vault.open(sealed, place), place)
                await pool.execute(_REPLACE.format(**names), resealed, sealed, *key)
            done += len(rows)
    return done


_DESTROYED_AT_ONCE = 500


async def shred_after_retention(bank: Bank) -> int:
    """Destroy the keys of customers who were closed that many years ago, and of applicants who were never accepted.

    Return how many. The money they moved stays in the ledger and remains provable. The audit log names those
    forgotten.
    """
    now, count = await bank.now(), 0
    years = bank.settings.retention_years
    while ended := await store.list_retention_ended(bank.pool, now, years, _DESTROYED_AT_ONCE):
        for subject_id, log_id in ended:
            async with audited(
                bank,
                log_id,
                Origin.system(),
                "data_key.shredded",
                resource_id=subject_id,
                details={"retention_years": years},
            ) as action:
                if await bank.ports[DataKeys].shred(action.conn, subject_id, now):
                    count += 1
                else:
                    action.skip()  # another worker was quicker
    return count
