from datetime import UTC, datetime, timedelta

import pytest

from billfold.audit import record as audit_record
from billfold.audit.file_archive import FileArchive
from billfold.audit.types import NewEntry, Origin
from billfold.audit.worker import AuditSealer
from billfold.platform import ids

NOW = datetime(2025, 6, 2, 13, tzinfo=UTC)


class Clock:
    now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


async def record(bank):
    entry = NewEntry(customer_id=ids.new(), origin=Origin.system(), action="a.b", resource_type="a")
    async with bank.pool.acquire() as conn, conn.transaction():
        await audit_record.record(conn, bank.vault, entry, now=NOW)


async def test_seals_are_made_every_hour_and_carried_out(bank, clock, tmp_path):
    archive = FileArchive(tmp_path / "seals.txt")
    notary = AuditSealer(archive, clock)
    assert await notary(bank) == 0
    await record(bank)
    clock.now += timedelta(minutes=2)
    assert await notary(bank) == 1
    await record(bank)
    clock.now += timedelta(minutes=30)
    assert await notary(bank) == 0
    clock.now += timedelta(minutes=31)
    assert await notary(bank) == 1
    assert len(await archive.lines()) == 2


async def test_another_worker_carries_out_what_the_first_did_not(bank, clock, tmp_path):
    await record(bank)
    await AuditSealer(FileArchive(tmp_path / "lost.txt"), clock)(bank)
    archive = FileArchive(tmp_path / "seals.txt")
    assert await AuditSealer(archive, clock)(bank) == 0
    assert len(await archive.lines()) == 1
