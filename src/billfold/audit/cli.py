"""`billfold audit`: the audit log as the operator reads it, and its seals."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import msgspec
import typer

from billfold.audit import store as audit_store
from billfold.audit.sealing import archive_seals, seal_audit_log
from billfold.audit.types import AuditEntry, EntryFilter
from billfold.cli.context import cli_context
from billfold.cli.output import example, print_success
from billfold.cli.resources import run_with_bank, run_with_connection
from billfold.platform.clock import wall_now
from billfold.platform.dates import iso_z, require_aware
from billfold.platform.errors import InvalidInput

if TYPE_CHECKING:
    from billfold.ledger.bank import Bank
    from billfold.platform.database.pool import Connection

_CUSTOMER = "5d0c2a4e-8f00-8000-8000-0000000000e1"
_AT_ONCE = 500
app = typer.Typer(
    no_args_is_help=True,
    help="Read the audit log, and seal it. `billfold verify` proves it.",
    epilog=example(f"billfold audit list {_CUSTOMER}"),
)

CustomerId = Annotated[UUID, typer.Argument(help="The customer's id.")]
Since = Annotated[str | None, typer.Option("--from", help="From this instant on (RFC 3339).")]
Until = Annotated[str | None, typer.Option("--to", help="Until before this instant (RFC 3339).")]


@app.command("list", epilog=example(f"billfold audit list {_CUSTOMER} --limit 20"))
def list_entries(
    ctx: typer.Context,
    customer_id: CustomerId,
    *,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 50,
) -> None:
    """Show what was done, newest first."""
    filters = _filters(customer_id, since, until)

    async def work(conn: Connection) -> list[AuditEntry]:
        return await audit_store.list_entries(conn, filters, limit=limit)

    for row in run_with_connection(cli_context(ctx), work):
        typer.echo(_line(row))


@app.command(epilog=example(f"billfold audit export {_CUSTOMER} > log.jsonl"))
def export(ctx: typer.Context, customer_id: CustomerId, *, since: Since = None, until: Until = None) -> None:
    """Print the log as lines of JSON, oldest first, each with its hash."""
    filters = _filters(customer_id, since, until)

    async def work(conn: Connection) -> None:
        last: AuditEntry | None = None
        while True:
            cursor = None if last is None else (last.recorded_at, last.entry_no)
            rows = await audit_store.list_entries(conn, filters, cursor, descending=False, limit=_AT_ONCE)
            for row in rows:
                sys.stdout.buffer.write(msgspec.json.encode(_exported(row)) + b"\n")
            if len(rows) < _AT_ONCE:
                return
            last = rows[-1]

    run_with_connection(cli_context(ctx), work)


@app.command(epilog=example("billfold audit seal"))
def seal(ctx: typer.Context) -> None:
    """Seal the ends of the log now and carry the seals out, without waiting for the hour."""
    ground = cli_context(ctx)
    archive = ground.archive(ground.settings())

    async def work(bank: Bank) -> tuple[int, int]:
        return await seal_audit_log(bank, wall_now()), await archive_seals(bank, archive)

    sealed, archived = run_with_bank(ground, work)
    print_success(f"{sealed} made; {archived} are kept out of the bank.")


@app.command(epilog=example("billfold audit keys"))
def keys(ctx: typer.Context) -> None:
    """Print the public keys (Ed25519) by which anybody can check the seals; needs no database."""
    ground = cli_context(ctx)
    for key_id, pem in ground.vault(ground.settings()).public_keys().items():
        typer.echo(f"{key_id}\n{pem}")


def _filters(customer_id: UUID, since: str | None, until: str | None) -> EntryFilter:
    return EntryFilter(customer_id=customer_id, since=_instant("from", since), until=_instant("to", until))


def _instant(name: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else require_aware(datetime.fromisoformat(text))
    except ValueError:
        raise InvalidInput.at(name, msg="must be an instant with its offset") from None


def _line(row: AuditEntry) -> str:
    on = " ".join(filter(None, (row.resource_type, row.resource_id)))
    words = (f"{row.recorded_at:%Y-%m-%d %H:%M:%S}", row.outcome, row.action, row.actor_name, on)
    return f"{row.entry_no:>6}  " + "  ".join((*words, row.ip_address or ""))


def _exported(row: AuditEntry) -> dict[str, object]:
    exported = msgspec.structs.asdict(row)
    exported["recorded_at"] = iso_z(row.recorded_at)
    exported["details"] = msgspec.Raw(row.details.encode())
    return exported | {"hash": row.hash.hex()}
