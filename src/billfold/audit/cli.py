"""`billfold audit`: the audit log as the operator reads it, and its seals."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import msgspec
import typer

from billfold.audit import store as audit_store
from billfold.audit.sealing import carry_out, seal_all
from billfold.audit.types import Recorded, Wanted
from billfold.cli.context import ground_of
from billfold.cli.output import done, example
from billfold.cli.resources import with_bank, with_database
from billfold.platform.clock import wall_now
from billfold.platform.dates import aware, iso_z
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
    wanted = _wanted(customer_id, since, until)

    async def work(conn: Connection) -> list[Recorded]:
        return await audit_store.list_entries(conn, wanted, limit=limit)

    for row in with_database(ground_of(ctx), work):
        typer.echo(_line(row))


@app.command(epilog=example(f"billfold audit export {_CUSTOMER} > log.jsonl"))
def export(
    ctx: typer.Context, customer_id: CustomerId, *, since: Since = None, until: Until = None
) -> None:
    """Print the log as lines of JSON, oldest first, each with its hash."""
    wanted = _wanted(customer_id, since, until)

    async def work(conn: Connection) -> None:
        last: Recorded | None = None
        while True:
            place = None if last is None else (last.recorded_at, last.entry_no)
            rows = await audit_store.list_entries(
                conn, wanted, place, descending=False, limit=_AT_ONCE
            )
            for row in rows:
                sys.stdout.buffer.write(msgspec.json.encode(_exported(row)) + b"\n")
            if len(rows) < _AT_ONCE:
                return
            last = rows[-1]

    with_database(ground_of(ctx), work)


@app.command(epilog=example("billfold audit seal"))
def seal(ctx: typer.Context) -> None:
    """Seal the ends of the log now and carry the seals out, without waiting for the hour."""
    ground = ground_of(ctx)
    archive = ground.archive(ground.settings())

    async def work(bank: Bank) -> tuple[int, int]:
        return await seal_all(bank, wall_now()), await carry_out(bank, archive)

    made, held = with_bank(ground, work)
    done(f"{made} made; {held} are kept out of the bank.")


@app.command(epilog=example("billfold audit keys"))
def keys(ctx: typer.Context) -> None:
    """Print the public keys (Ed25519) by which anybody can check the seals; needs no database."""
    ground = ground_of(ctx)
    for key_id, pem in ground.vault(ground.settings()).public_keys().items():
        typer.echo(f"{key_id}\n{pem}")


def _wanted(customer_id: UUID, since: str | None, until: str | None) -> Wanted:
    return Wanted(
        customer_id=customer_id, since=_instant("from", since), until=_instant("to", until)
    )


def _instant(name: str, text: str | None) -> datetime | None:
    try:
        return None if text is None else aware(datetime.fromisoformat(text))
    except ValueError:
        raise InvalidInput.at(name, msg="must be an instant with its offset") from None


def _line(row: Recorded) -> str:
    on = " ".join(filter(None, (row.resource_type, row.resource_id)))
    words = (f"{row.recorded_at:%Y-%m-%d %H:%M:%S}", row.outcome, row.action, row.actor_name, on)
    return f"{row.entry_no:>6}  " + "  ".join((*words, row.ip_address or ""))


def _exported(row: Recorded) -> dict[str, object]:
    told = msgspec.structs.asdict(row)
    told["recorded_at"] = iso_z(row.recorded_at)
    told["details"] = msgspec.Raw(row.details.encode())
    return told | {"hash": row.hash.hex()}
