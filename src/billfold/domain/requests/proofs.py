"""What the audit log says of the rows of dual control, so that none can be changed behind its back.

Whoever writes such a row does so in a deed, and the deed's entry keeps the row's fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from billfold.kit.crypto import fingerprint

if TYPE_CHECKING:
    from asyncpg import Record

    from billfold.domain.audit import Deed

KEYS = {
    "transfer_request": ("request_id",),
    "change_request": ("request_id",),
    "review": ("request_id", "review_no"),
    "approval_rule": ("rule_id",),
    "dual_control": ("customer_id",),
}
"""Table -> what tells a row of it from the customer's others."""


def prove(doing: Deed, table: str, rows: Iterable[Record]) -> None:
    """Note in a deed what these rows come to, as it leaves them; all columns are there."""
    for row in rows:
        doing.proves(table, key_of(table, row), proof_of(row, row.keys()))


def key_of(table: str, row: Record) -> str:
    """Return what an entry calls a row."""
    return "/".join(str(row[name]) for name in KEYS[table])


def proof_of(row: Record, columns: Iterable[str]) -> str:
    """Return the fingerprint of all these columns: of one that is empty nothing is said.

    So a column that is added later changes nothing, until something is in it.
    """
    return fingerprint([(n, row[n]) for n in sorted(columns) if row[n] is not None])
