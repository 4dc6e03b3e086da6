"""`billfold audit`: the audit log of a customer, and its seals."""

import sys
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
import typer

from billfold.audit import store
from billfold.audit.rules import AuditEntry, EntryFilter, open_details
from billfold.audit.seals import archive_seals, seal_audit_log
from billfold.cli.command import EXAMPLE_ID, CommandGroup, Row
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Connection
from billfold.platform.dates import DAY_RANGE, iso_z, parse_instant
from billfold.platform.errors import InvalidInput, NotFound
from billfold.wiring.cli_context import Wiring

_AT_ONCE = 500
group = CommandGroup(
    "audit", "Read the audit log, and seal it. `billfold verify` checks it.", example=f"list {EXAMPLE_ID}"
)

CustomerId = Annotated[UUID | None, typer.Argument(help="The customer's id; if omitted, the bank's own log.")]
_BANK = "SELECT bank_customer_id FROM bank"
_HAS_LOG = "SELECT EXISTS (SELECT 1 FROM audit_chain_head WHERE customer_id = $1)"
Since = Annotated[str | None, typer.Option("--from", help="From this instant, inclusive (RFC 3339).")]
Until = Annotated[str | None, typer.Option("--to", help="Up to this instant, exclusive (RFC 3339).")]


@group.table(f"list {EXAMPLE_ID} --limit 20", "list", columns=("no>", "UTC", "outcome", "action", "who", "on"))
async def list_entries(
    conn: Connection,
    customer_id: CustomerId = None,
    *,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 50,
) -> Iterable[Row]:
    """List entries, newest first."""
    filters = await _filters(conn, customer_id, since=since, until=until)
    return [
        (
            each.entry_no,
            f"{each.recorded_at:%Y-%m-%d %H:%M:%S}",
            each.outcome,
            each.action,
            " ".join(filter(None, (each.actor_name, each.ip_address))),
            " ".join(filter(None, (each.resource_type, each.resource_id))),
        )
        for each in await store.list_entries(conn, filters, limit=limit)
    ]


@group.view(f"export {EXAMPLE_ID} > log.jsonl")
async def export(
    conn: Connection, context: Wiring, customer_id: CustomerId = None, *, since: Since = None, until: Until = None
) -> None:
    """Print the log as lines of JSON, oldest first, each with its hash.

    The hash covers `details` as they are stored. If they hold sealed contact details, `opened_details` shows them.
    """
    vault = context.vault(context.settings())
    filters, cursor = await _filters(conn, customer_id, since=since, until=until), None
    while True:
        rows = await store.list_entries(conn, filters, cursor, descending=False, limit=_AT_ONCE)
        for row in rows:
            sys.stdout.buffer.write(msgspec.json.encode(_exported(row, vault)) + b"\n")
        if len(rows) < _AT_ONCE:
            return
        cursor = rows[-1].recorded_at, rows[-1].entry_no


@group.view("seal")
async def seal(bank: Bank, context: Wiring) -> str:
    """Seal the ends of the log now and archive the seals, without waiting for the hour."""
    sealed, archived = await seal_audit_log(bank, wall_now()), await archive_seals(bank, context.archive(bank.settings))
    return f"{sealed} seals created; {archived} are archived."


@group.view("keys")
def keys(context: Wiring) -> None:
    """Print the public keys (Ed25519) that verify the seals; needs no database."""
    for key_id, pem in context.vault(context.settings()).public_keys().items():
        typer.echo(f"{key_id}\n{pem}")


async def _filters(conn: Connection, customer_id: UUID | None, *, since: str | None, until: str | None) -> EntryFilter:
    owner = customer_id or await conn.fetchval(_BANK)
    if customer_id is not None and not await conn.fetchval(_HAS_LOG, customer_id):
        raise NotFound(f"There is no log of {customer_id}.")
    return EntryFilter(customer_id=owner, since=_instant("from", since), until=_instant("to", until))


def _instant(name: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_instant(text)
    except ValueError:
        raise InvalidInput.at(name, msg=f"must be a timestamp with an offset, {DAY_RANGE}") from None


def _exported(row: AuditEntry, vault: Vault) -> dict[str, object]:
    exported = msgspec.structs.asdict(row)
    exported["recorded_at"] = iso_z(row.recorded_at)
    exported["details"] = msgspec.Raw(row.details.encode())
    opened = open_details(row, vault)
    if opened != msgspec.json.decode(row.details):
        exported["opened_details"] = opened
    return exported | {"hash": row.hash.hex()}
