from datetime import UTC, datetime, timedelta

import pytest

from billfold.audit import record as audit_record
from billfold.audit import seals
from billfold.audit.rules import NewEntry
from billfold.audit.seals import AuditSealer, FileArchive, archive_seals, seal_audit_log
from billfold.ledger.types import Origin
from billfold.platform import ids

NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)


class Clock:
    now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


async def record(bank, count=1):
    entries = [
        NewEntry(customer_id=ids.new(), origin=Origin.system(), action="a.b", resource_type="a") for _ in range(count)
    ]
    async with bank.pool.acquire() as conn, conn.transaction():
        await audit_record.record_all(conn, bank.vault, entries, now=NOW)


async def test_seals_are_made_hourly_and_archived(bank, clock, tmp_path):
    archive = FileArchive(tmp_path / "seals.txt")
    sealer = AuditSealer(archive, clock)
    assert await sealer(bank) == 1  # of the market
    clock.now += timedelta(hours=2)
    assert await sealer(bank) == 0
    await record(bank)
    clock.now += timedelta(minutes=2)
    assert await sealer(bank) == 1
    await record(bank)
    clock.now += timedelta(minutes=30)
    assert await sealer(bank) == 0
    clock.now += timedelta(minutes=31)
    assert await sealer(bank) == 1
    assert len(await archive.lines()) == 3


async def test_a_second_worker_archives_seals_that_the_first_left_unarchived(bank, clock, tmp_path):
    await record(bank)
    await AuditSealer(FileArchive(tmp_path / "lost.txt"), clock)(bank)
    archive = FileArchive(tmp_path / "seals.txt")
    assert await AuditSealer(archive, clock)(bank) == 0
    assert len(await archive.lines()) == 1


async def test_every_advanced_chain_head_is_sealed_once_in_batches(bank, monkeypatch):
    monkeypatch.setattr(seals, "HEADS_MAX", 2)
    await record(bank, 4)  # besides that of the market and the bank's own
    assert await seal_audit_log(bank, NOW) == 3
    assert await seal_audit_log(bank, NOW) == 0
    lines = await seals.list_seal_lines(bank.pool, 0)
    sealed = [seals.parse_seal(line, bank.vault) for line in lines]
    assert [len(each.heads) for each in sealed] == [2, 2, 2]
    assert sealed[1].previous == seals.fingerprint(lines[0])


async def test_seals_are_archived_once_after_an_interrupted_write(bank, tmp_path):
    path = tmp_path / "seals.txt"
    archive = FileArchive(path)
    for count in (1, 1, 1):
        await record(bank, count)
        await seal_audit_log(bank, NOW)
        assert await archive_seals(bank, archive) == await bank.pool.fetchval("SELECT count(*) FROM audit_seal")
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert await archive_seals(bank, archive) == 3
    assert path.read_bytes() == whole
    assert await archive.lines() == await seals.list_seal_lines(bank.pool, 0)
