"""`billfold proof`: daily roots, and the proofs out of them, as files."""

from datetime import date
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import msgspec
import typer

from billfold.cli.command import EXAMPLE_ID, CommandGroup, DayOption
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.proofs import prove_customer
from billfold.reports.proofs.roots.types import Unbalanced
from billfold.reports.proofs.roots.worker import publish_root

group = CommandGroup(
    "proof", "Prove what the bank owed at the close of a day.", example=f"customer {EXAMPLE_ID} --day 2025-06-02"
)
Day = Annotated[date | None, DayOption(help="The business day; by default the last.")]
Out = Annotated[Path | None, typer.Option(help="Where to write it; by default it is printed.")]
_USE: Final = "Check it with tools/check_proof.py."


@group.view(f"customer {EXAMPLE_ID} --day 2025-06-02 --out proof.json")
async def customer(bank: Bank, customer_id: UUID, *, day: Day = None, out: Out = None) -> str | None:
    """Write the proof of a customer's balance, which shows nothing of the others."""
    root = await store.get_root(bank.pool, day)
    proof = await prove_customer(bank.pool, bank, root, customer_id)
    return _write(msgspec.json.format(msgspec.json.encode(proof)), out)


@group.view("backing --day 2025-06-02 --out backing.json")
async def backing(bank: Bank, *, day: Day = None, out: Out = None) -> str | None:
    """Write the proof that the custodian holds, or is to receive, as many bills as customers own."""
    root = await store.get_root(bank.pool, day)
    return _write(msgspec.json.format(msgspec.json.encode({"root": root.jws})), out)


@group.view("root --day 2025-06-02 --out 2025-06-02.jws")
async def root(bank: Bank, *, day: Day = None, out: Out = None) -> str | None:
    """Write the signed root of a day, as it is published."""
    return _write((await store.get_root(bank.pool, day)).jws.encode(), out)


@group.command("publish")
async def publish(bank: Bank) -> str:
    """Publish the root of the last closed day, after what did not balance was mended."""
    try:
        made = await publish_root(bank)
    except Unbalanced as unbalanced:
        raise CliError(f"Nothing is published: {unbalanced}", "Run `billfold verify`.") from None
    return f"Root {made.number}, of {made.day}, is published."


def _write(content: bytes, out: Path | None) -> str | None:
    if out is None:
        typer.echo(content.decode())
        return None
    out.write_bytes(content + b"\n")
    return f"{out} is written. {_USE}"
