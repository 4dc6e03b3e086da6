"""`billfold document-keys`: the keys that documents are signed with; `billfold proof`: daily roots and proofs as files.

Also `billfold verify FILE`.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import msgspec
import typer

from billfold.cli.command import (
    EXAMPLE_ID,
    CommandGroup,
    DayOption,
    Row,
    console,
    key_value_table,
    parse_instant_option,
    print_error,
    print_success,
)
from billfold.cli.context import CliError
from billfold.ledger.bank import Bank
from billfold.platform.database.connection import Connection
from billfold.platform.dates import format_eastern
from billfold.platform.errors import InvalidInput, NotFound
from billfold.reports.proofs import signatures
from billfold.reports.proofs.roots import store
from billfold.reports.proofs.roots.store import prove_customer
from billfold.reports.proofs.roots.types import Unbalanced
from billfold.reports.proofs.roots.worker import publish_root
from billfold.reports.proofs.signatures import KEYS_PATH
from billfold.reports.proofs.signed_files import FileVerdict, Verdict, verify_file

key_commands = CommandGroup(
    "document-keys", "List the keys that documents are signed with, replace the one in use, or revoke one."
)


@key_commands.table("list", columns=("key", "signs from", "revoked"), empty="No document has been signed yet.")
async def list_keys(conn: Connection) -> Iterable[Row]:
    """List the keys, oldest first. Each stays published."""
    return await signatures.list_keys(conn)


@key_commands.command("rotate")
async def rotate(bank: Bank) -> str:
    """Create a new key; documents of the next hour are still signed with the present one."""
    key_id = await signatures.rotate_document_key(bank.pool, bank.vault, await bank.now())
    minutes = int(signatures.PUBLICATION_LEAD.total_seconds() // 60)
    return f"{key_id} is published at {KEYS_PATH}, and signs in {minutes} minutes."


@key_commands.command("revoke 3Zb0X1yqkUq2nTLrXw9cYbH5s7fVd6mJp8eKaGhR4tE --reason 'The backup was stolen'")
async def revoke(
    bank: Bank,
    key_id: Annotated[str, typer.Argument(help="The key, as `list` shows it.")],
    *,
    reason: Annotated[str, typer.Option(help="Why; it is kept with the key.", min=1)],
    since: Annotated[
        datetime | None,
        typer.Option(parser=parse_instant_option, help="Since when, like 2025-06-02T09:00:00Z; by default now."),
    ] = None,
) -> str:
    """Revoke a key for good: its signatures of later times are invalid. Another key signs at once."""
    now = await bank.now()
    revoked_at = now if since is None else since
    try:
        next_id = await signatures.revoke_document_key(
            bank.pool, bank.vault, key_id, revoked_at=revoked_at, reason=reason, now=now
        )
    except (InvalidInput, NotFound) as refused:
        raise CliError(str(refused), "See `billfold document-keys list`.") from None
    return f"{key_id} is revoked from {format_eastern(revoked_at)} on, at {KEYS_PATH} too; {next_id} signs now."


def verify_files(files: Sequence[Path], key: Path | None) -> None:
    """Verify documents with only the bank's public keys. Raises CliError, typer.Exit."""
    if key is None:
        raise CliError(
            "The public keys of the bank are missing.", f"Save {KEYS_PATH} of the bank, and name it by --key."
        )
    try:
        keys = signatures.parse_keys(key.read_bytes())
    except signatures.Unproven as wrong:
        raise CliError(str(wrong), f"Save {KEYS_PATH} of the bank again.") from None
    verdicts = []
    for path in files:
        found = verify_file(path, keys)
        _show(path, found)
        verdicts.append(found.verdict)
    worst = next((each for each in _GRAVEST if each in verdicts), Verdict.SIGNED)
    if worst is not Verdict.SIGNED:
        raise typer.Exit(worst)


_GRAVEST = (Verdict.ALTERED, Verdict.REVOKED, Verdict.FOREIGN, Verdict.UNSIGNED)


def _show(path: Path, found: FileVerdict) -> None:
    signed = found.manifest
    if found.verdict is Verdict.SIGNED and signed is not None:
        print_success(f"{path}: {signed.bank} has signed this document, and it is unaltered.")
    else:
        problem = {
            Verdict.ALTERED: "this is not what the bank signed.",
            Verdict.FOREIGN: "this bank has not signed it.",
            Verdict.REVOKED: "it is signed with a key that was revoked: not by the bank.",
            Verdict.UNSIGNED: "it is not signed.",
        }[found.verdict]
        print_error(f"{path}: {problem}")
        for each in found.findings:
            print_error(f"  {each}")
    if signed is not None:
        rows = [
            ("Document", signed.document),
            ("Customer", f"{signed.customer} ({signed.customer_id})"),
            *(("Pocket", f"{each.name} ({each.id})") for each in signed.pockets),
            ("At", format_eastern(signed.at)),
            ("Ledger position", f"journal entry {signed.position.entry_no:,}, commit {signed.position.version:,}"),
            ("Chain hash", signed.position.chain),
            ("Signed with", found.key_id),
            *_revocation_warning(found),
            *((each.label, each.value) for each in signed.figures),
        ]
        console.print(key_value_table(rows))


def _revocation_warning(found: FileVerdict) -> Iterable[tuple[str, str]]:
    """Say that a key was revoked after the time of a document: anyone with the key can write any earlier time."""
    if found.revoked_at is not None:
        yield (
            "Caution",
            f"the key was revoked at {format_eastern(found.revoked_at)}; ask the bank to make the document again",
        )


proof_commands = CommandGroup(
    "proof", "Prove what the bank owed at the close of a day.", example=f"customer {EXAMPLE_ID} --day 2025-06-02"
)
Day = Annotated[date | None, DayOption(help="The business day; by default the last.")]
Out = Annotated[Path | None, typer.Option(help="Where to write it; by default it is printed.")]
_USE: Final = "Check it with tools/check_proof.py."


@proof_commands.view(f"customer {EXAMPLE_ID} --day 2025-06-02 --out proof.json")
async def customer(bank: Bank, customer_id: UUID, *, day: Day = None, out: Out = None) -> str | None:
    """Write the proof of a customer's balance, which reveals nothing about other customers."""
    root = await store.get_root(bank.pool, day)
    proof = await prove_customer(bank.pool, bank, root, customer_id)
    return _write(msgspec.json.format(msgspec.json.encode(proof)), out)


@proof_commands.view("backing --day 2025-06-02 --out backing.json")
async def backing(bank: Bank, *, day: Day = None, out: Out = None) -> str | None:
    """Write the proof that the custodian holds, or will receive, as many bills as customers own."""
    root = await store.get_root(bank.pool, day)
    return _write(msgspec.json.format(msgspec.json.encode({"root": root.jws})), out)


@proof_commands.view("root --day 2025-06-02 --out 2025-06-02.jws")
async def root(bank: Bank, *, day: Day = None, out: Out = None) -> str | None:
    """Write the signed root of a day, as published."""
    return _write((await store.get_root(bank.pool, day)).jws.encode(), out)


@proof_commands.command("publish")
async def publish(bank: Bank) -> str:
    """Publish the root of the last closed day, after an imbalance was corrected."""
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
