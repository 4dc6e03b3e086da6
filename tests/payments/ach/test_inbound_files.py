"""Files of the ACH network: a malformed one is refused, and the report gives the reason."""

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.payments.ach.nacha.files import a_batch, a_change, a_file, a_return, an_entry

from billfold.accounts.portals.commands import UpdatePortal
from billfold.ledger.scheduler import run_scheduled_jobs
from billfold.payments.ach.inbound_files import AchFileProcessor
from billfold.payments.ach.nacha.reader import read_file
from billfold.payments.ach.nacha.records import ReturnAddenda
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.files import store
from billfold.payments.files.exchange import RailExchanges
from billfold.platform import ids
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.verify.runner import verify_bank

OURS, THEIRS = "061199992", "09100001"
MONDAY = datetime(2025, 6, 2, 9)


def entry(number, account="100000000001", **changes):
    fields: dict[str, Any] = {"routing_number": OURS, "dfi_account_number": account, "amount": 500_00}
    return an_entry(number, **fields | {"trace_number": f"{THEIRS}{number:07}"} | changes)


def file_of(*entries, entry_class="PPD", **changes):
    batch = a_batch(*entries, standard_entry_class_code=entry_class, originating_dfi_identification=THEIRS)
    return a_file(batch, **{"immediate_destination": OURS, "created_at": MONDAY} | changes)


def returned(number, original, code="R03", **changes):
    told = a_return(
        return_reason_code=code, original_entry_trace_number=original, original_receiving_dfi_identification=THEIRS
    )
    return entry(number, transaction_code="21", addenda=(told,), **changes)


def noc(**fields):
    """Return a file with one notification of change."""
    told = a_change(original_entry_trace_number="061199990009999", **fields)
    return file_of(entry(1, transaction_code="21", amount=0, addenda=(told,)), entry_class="COR")


class Room:
    """The folder of the network and its file processor."""

    def __init__(self, bank):
        self.bank, self.gate = bank, AchFileProcessor()
        self.other = bank.ports[RailExchanges].ach.network_side()
        self.folder = bank.settings.rails_dir / "ach"

    async def put(self, name, content):
        raw = content if isinstance(content, bytes) else write_file(content)
        await self.other.transmit(name, raw)
        return await self.gate.process_all(self.bank)

    def report(self, name, *, refused=False):
        there = self.folder / ("refused" if refused else "done")
        assert (there / name).exists()
        return json.loads((there / f"{name}.report.json").read_text())

    async def legs(self):
        return await self.bank.pool.fetchval("SELECT count(*) FROM posting")

    async def booked(self):
        """Return the number of booked entries and held payments."""
        row = await self.bank.pool.fetchrow(
            "SELECT (SELECT count(*) FROM ach_entry), (SELECT count(*) FROM suspense_item)"
        )
        return tuple(row)

    async def sent(self):
        """Return every return entry of the transmitted files."""
        names = sorted(path.name for path in (self.folder / "sent").glob("*.ach"))
        told = [read_file((self.folder / "sent" / name).read_bytes()) for name in names]
        return [
            (each.addenda[0].return_reason_code, each.amount, each.addenda[0].original_entry_trace_number)
            for file in told
            for batch in file.batches
            for each in batch.entries
            if isinstance(each.addenda[0], ReturnAddenda)
        ]

    async def prove(self):
        async with self.bank.pool.acquire() as conn:
            report = await verify_bank(conn, market=self.bank.market, vault=self.bank.vault)
        assert not report.findings, report.findings[:3]


@pytest.fixture
def room(bank):
    return Room(bank)


async def account_of(bank, holder):
    return await bank.pool.fetchval("SELECT account_number FROM portal WHERE portal_id = $1", holder.portal_id)


def broken(raw):
    """Malformed files, by their mistake."""
    lines = raw.decode().splitlines()
    other = [*lines]
    control = next(n for n, line in enumerate(lines) if line.startswith("9") and line != "9" * 94)
    other[control] = lines[control][:21] + "0000000001" + lines[control][31:]
    totals = [*lines]
    totals[control] = lines[control][:43] + "000000000001" + lines[control][55:]
    return {
        "cut in half": raw[: len(raw) // 2],
        "wrong hash": "\n".join(other).encode() + b"\n",
        "wrong totals": "\n".join(totals).encode() + b"\n",
        "nothing": b"",
        "no letters": b"\xff\xfe" * 100,
    }


async def test_a_malformed_ach_file_is_refused_as_a_whole(bank, new_holder, room):
    holder = await new_holder()
    account = await account_of(bank, holder)
    raw = write_file(file_of(entry(1, account), entry(2, account)))
    legs = await room.legs()
    for number, content in enumerate(broken(raw).values()):
        await room.put(f"{number}.ach", content)
        mistakes = room.report(f"{number}.ach", refused=True)["mistakes"]
        assert mistakes
        assert all(each["reason"] for each in mistakes)
    assert await room.legs() == legs
    listed = await store.list_files(bank.pool, rail="ACH", state="REFUSED")
    assert len(listed) == 5
    # What was refused comes again when it has been mended.
    await room.put("0.ach", raw)
    assert room.report("0.ach")["taken"] == 2


async def test_an_ach_file_for_a_different_bank_is_refused(room):
    await room.put("odd.ach", file_of(entry(1), immediate_destination="021000021"))
    mistake = room.report("odd.ach", refused=True)["mistakes"][0]
    assert mistake["line"] == 1
    assert mistake["reason"] == f"is addressed to 021000021, and this bank is {OURS}"


async def test_a_duplicate_ach_file_is_refused_under_any_name(bank, new_holder, room):
    holder = await new_holder()
    content = file_of(entry(1, await account_of(bank, holder)))
    await room.put("one.ach", content)
    assert room.report("one.ach")["taken"] == 1
    legs = await room.legs()
    raw = write_file(content)
    again = (
        ("two.ach", raw),
        ("one.ach", raw),
        ("dos.ach", raw.replace(b"\n", b"\r\n")),
        ("tape.ach", raw.replace(b"\n", b"")),
    )
    for name, sent in again:
        await room.put(name, sent)
        told = room.report(name, refused=True)["mistakes"][0]["reason"]
        assert told == "The same content arrived as one.ach on 2025-06-02."
    assert await room.legs() == legs


async def test_entries_for_closed_portals_and_uncovered_debits_are_returned_in_the_next_window(bank, new_holder, room):
    holder, leaver = await new_holder(), await new_holder()
    account, closed = await account_of(bank, holder), await account_of(bank, leaver)
    await bank.engine.submit(
        UpdatePortal(
            caller="test", key=ids.new(), customers=(leaver.customer_id,), portal_id=leaver.portal_id, close=True
        )
    )
    content = file_of(entry(1, account), entry(2, closed), entry(3, account, transaction_code="27", amount=900_00))
    await room.put("mixed.ach", content)
    told = room.report("mixed.ach")
    assert (told["taken"], told["sent_back"]) == (1, 2)
    assert [(each["line"], each["code"]) for each in told["lines"]] == [(4, "R02"), (5, "R01")]
    await ClockStepper(bank).advance(timedelta(days=1))
    assert sorted(await room.sent()) == [("R01", 900_00, f"{THEIRS}0000003"), ("R02", 500_00, f"{THEIRS}0000002")]
    await room.prove()


async def test_ach_credits_to_unknown_accounts_are_held_a_day_and_returned(bank, room):
    content = file_of(entry(1), entry(2, transaction_code="27"), entry(3, transaction_code="23", amount=0))
    await room.put("nobody.ach", content)
    told = room.report("nobody.ach")
    assert (told["held"], told["sent_back"]) == (2, 1)
    held = await bank.pool.fetch("SELECT direction, status FROM suspense_item ORDER BY direction")
    assert [tuple(row) for row in held] == [("CREDIT", "HELD"), ("DEBIT", "HELD")]
    await ClockStepper(bank).advance(timedelta(days=2))
    statuses = await bank.pool.fetch("SELECT DISTINCT status FROM suspense_item")
    assert [row[0] for row in statuses] == ["RETURNED"]
    assert sorted(await room.sent()) == [
        ("R03", 0, f"{THEIRS}0000003"),
        ("R03", 500_00, f"{THEIRS}0000001"),
        ("R03", 500_00, f"{THEIRS}0000002"),
    ]
    await room.prove()


async def test_a_return_of_an_unknown_entry_is_held_and_then_dishonored(bank, room):
    await room.put("strange.ach", file_of(returned(1, "061199990009999")))
    told = room.report("strange.ach")
    assert told["lines"][0] == {"line": 3, "trace": f"{THEIRS}0000001", "outcome": "HELD", "code": "R69"}
    await ClockStepper(bank).advance(timedelta(days=2))
    assert await room.sent() == [("R69", 500_00, "061199990009999")]
    await room.prove()


async def test_an_unmatched_notification_of_change_is_only_reported(bank, room):
    await room.put("change.ach", noc())
    assert room.report("change.ach")["lines"][0]["outcome"] == "FITS_NO_ENTRY"
    assert msgspec.json.encode(room.report("change.ach"))
    kept = await run_scheduled_jobs(bank, await bank.now())
    assert kept.failed == {}
