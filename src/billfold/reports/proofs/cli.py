"""`billfold document-keys`: the keys that documents are signed with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from billfold.cli.command import CommandGroup, Row
from billfold.reports.proofs import document_keys
from billfold.reports.proofs.routes import KEYS_PATH

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

group = CommandGroup("document-keys", "List the keys that documents are signed with, or replace the one in use.")


@group.table("list", columns=("key", "signs from"), empty="No document has been signed yet.")
async def list_keys(conn: Connection) -> Iterable[Row]:
    """List the keys, the oldest first. Each stays published."""
    return await document_keys.list_keys(conn)


@group.command("rotate")
async def rotate(bank: Bank) -> str:
    """Make a new key; documents of the next hour are still signed with the present one."""
    key_id = await document_keys.rotate_document_key(bank.pool, bank.vault, await bank.now())
    minutes = int(document_keys.PUBLICATION_LEAD.total_seconds() // 60)
    return f"{key_id} is published at {KEYS_PATH}, and signs in {minutes} minutes."
