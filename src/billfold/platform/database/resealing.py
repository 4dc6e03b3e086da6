"""Secrets that are sealed with the encryption key itself are sealed again with the current one.

It may be stopped and begun again. Each value opens under the former key until its row is replaced, and then under the
current one: processes know both. What was written into chains for good stays as it is.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Pool

_BATCH_SIZE = 500
_ROWS = "SELECT {keys}, sealed FROM {table} WHERE sealed IS NOT NULL AND substring(sealed FOR 5) <> $1 LIMIT {limit}"
_REPLACE = "UPDATE {table} SET sealed = $1 WHERE sealed = $2 AND {match}"


class SecretColumn(NamedTuple):
    """The column `sealed` of a table, its key, and the place of a value from the columns of that."""

    table: str
    keys: tuple[str, ...]
    place: Callable[..., bytes]


async def reseal(pool: Pool, vault: Vault, columns: Sequence[SecretColumn]) -> int:
    """Seal what is sealed under former keys with the current one; return how many values. Raises InvariantError."""
    done = 0
    head = b"\x01" + bytes.fromhex(vault.key_id)
    for column in columns:
        match = " AND ".join(f"{key} = ${number}" for number, key in enumerate(column.keys, start=3))
        keys = ", ".join(column.keys)
        names: dict[str, Any] = {"table": column.table, "keys": keys, "match": match, "limit": _BATCH_SIZE}
        while rows := await pool.fetch(_ROWS.format(**names), head):
            for *key, sealed in rows:
                place = column.place(*key)
                anew = vault.seal(vault.open(sealed, place), place)
                await pool.execute(_REPLACE.format(**names), anew, sealed, *key)
            done += len(rows)
    return done
