from datetime import timedelta

import pytest
from tests.audit.test_sealing import NOW, record

from billfold.audit.file_archive import FileArchive
from billfold.audit.worker import AuditSealer


class Clock:
    """A clock that a test moves."""

    now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


async def test_seals_are_made_every_hour_and_carried_out(bank, clock, tmp_path):
    archive = FileArchive(tmp_path / "seals.txt")
    notary = AuditSealer(archive, clock)
    assert await notary(bank) == 0
    await record(bank, 1)
    clock.now += timedelta(minutes=2)
    assert await notary(bank) == 1
    await record(bank, 1)
    clock.now += timedelta(minutes=30)
    assert await notary(bank) == 0
    clock.now += timedelta(minutes=31)
    assert await notary(bank) == 1
    assert len(await archive.lines()) == 2


async def test_another_worker_carries_out_what_the_first_did_not(bank, clock, tmp_path):
    await record(bank, 1)
    await AuditSealer(FileArchive(tmp_path / "lost.txt"), clock)(bank)
    archive = FileArchive(tmp_path / "seals.txt")
    assert await AuditSealer(archive, clock)(bank) == 0
    assert len(await archive.lines()) == 1
