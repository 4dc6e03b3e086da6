"""Files are kept under names that say nothing, and come back as they were."""

import os
import resource
import stat
from datetime import UTC, datetime

import pytest

from billfold.documents.local_store import LocalFileStore
from billfold.documents.ports import StoredFile, StoredFileMissing


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "files"


async def test_a_file_comes_back_as_it_was_kept(folder):
    kept = await LocalFileStore(folder).keep(b"a letter")

    assert await LocalFileStore(folder).fetch(kept) == b"a letter"
    assert kept.size_bytes == 8
    assert len(kept.sha256) == 64


async def test_the_same_content_twice_is_two_files(folder):
    files = LocalFileStore(folder)

    one, other = await files.keep(b"same"), await files.keep(b"same")

    assert one.key != other.key
    assert one.sha256 == other.sha256


async def test_only_the_bank_may_read_it_and_no_half_of_it_is_left(folder):
    await LocalFileStore(folder).keep(b"secret")

    found = [path for path in folder.rglob("*") if path.is_file()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in found] == [0o600]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_nothing_is_left_of_a_file_that_the_disk_has_no_room_for(folder):
    files, limits = LocalFileStore(folder), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            await files.keep(b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path for path in folder.rglob("*") if path.is_file()] == []


async def test_a_file_that_was_changed_is_not_handed_out(folder):
    kept = await LocalFileStore(folder).keep(b"original")
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    path.write_bytes(b"tampered")

    with pytest.raises(StoredFileMissing, match="not what was kept"):
        await LocalFileStore(folder).fetch(kept)


async def test_what_is_old_is_listed_with_what_was_never_finished(folder):
    files = LocalFileStore(folder)
    old, young = await files.keep(b"old"), await files.keep(b"young")
    unfinished = folder / old.key[:2] / f"{old.key}.part"
    unfinished.write_bytes(b"half")
    for path in (folder / old.key[:2] / old.key, unfinished):
        os.utime(path, (0, 0))

    listed = await files.list_stored(datetime(2025, 1, 1, tzinfo=UTC))
    assert listed == [old.key, f"{old.key}.part"]

    for key in listed:
        await files.discard(key)
    assert await files.list_stored(datetime.max.replace(tzinfo=UTC)) == [young.key]


async def test_a_discarded_file_is_gone_and_may_be_discarded_again(folder):
    files = LocalFileStore(folder)
    kept = await files.keep(b"old")

    await files.discard(kept.key)
    await files.discard(kept.key)

    with pytest.raises(StoredFileMissing):
        await files.fetch(kept)


@pytest.mark.parametrize("key", ["../../etc/passwd", "", "ab/cd", "A" * 40, "0" * 39, "/" + "0" * 39])
async def test_no_key_leads_out_of_the_folder(folder, key):
    with pytest.raises(StoredFileMissing, match="not the name of a file"):
        await LocalFileStore(folder).fetch(StoredFile(key=key, size_bytes=0, sha256=""))
