"""Files are kept under names that say nothing, and come back as they were: in a folder and in a bucket."""

import asyncio
import os
import resource
import stat
import time
from datetime import UTC, datetime, timedelta

import pytest

from billfold.documents import s3_store
from billfold.documents.local_store import LocalFileStore
from billfold.documents.ports import FileStoreUnusable, StoredFile, StoredFileMissing
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.errors import Unavailable

MEGABYTE = 1024 * 1024


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "files"


@pytest.fixture(params=["folder", "bucket"])
def files(request, folder):
    """A store with nothing in it."""
    if request.param == "folder":
        return LocalFileStore(folder)
    return request.getfixturevalue("s3_server").store(f"documents/{ids.new()}")


async def test_a_file_comes_back_as_it_was_kept(files):
    contents = (b"a letter", b"", os.urandom(50 * MEGABYTE - 1))

    for content in contents:
        kept = await files.keep(content)
        assert await files.fetch(kept) == content
        assert kept.size_bytes == len(content)
        assert len(kept.sha256) == 64


async def test_the_same_content_twice_is_two_files(files):
    one, other = await asyncio.gather(files.keep(b"same"), files.keep(b"same"))

    assert one.key != other.key
    assert one.sha256 == other.sha256


async def test_a_discarded_file_is_gone_and_may_be_discarded_again(files):
    kept = await files.keep(b"old")

    await files.discard(kept.key)
    await files.discard(kept.key)

    with pytest.raises(StoredFileMissing):
        await files.fetch(kept)


@pytest.mark.parametrize("key", ["../../etc/passwd", "", "ab/cd", "A" * 40, "0" * 39, "/" + "0" * 39])
async def test_no_key_leads_out_of_the_store(files, key):
    with pytest.raises(StoredFileMissing, match="not the name of a file"):
        await files.fetch(StoredFile(key=key, size_bytes=0, sha256=""))
    with pytest.raises(StoredFileMissing, match="not the name of a file"):
        await files.discard(key)


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


async def test_an_object_that_was_changed_is_not_handed_out(s3_server):
    files = s3_server.store()
    for other in (b"tampered", b"another size"):
        kept = await files.keep(b"original")
        await s3_server.write(f"documents/{kept.key}", other)

        with pytest.raises(StoredFileMissing, match="not what was kept"):
            await files.fetch(kept)


async def test_more_objects_than_a_page_are_listed_and_those_of_others_are_not(s3_server):
    files, wanted = s3_server.store("many"), []
    for _ in range(21):
        wanted += [each.key for each in await asyncio.gather(*(files.keep(b"x") for _ in range(50)))]
    for other in ("many/readme.txt", f"many/old/{wanted[0]}", f"more/{wanted[0]}", f"manyfold/{wanted[0]}"):
        await s3_server.write(other, b"of somebody else")

    assert await files.list_stored(wall_now() + timedelta(minutes=1)) == sorted(wanted)
    assert await files.list_stored(wall_now() - timedelta(minutes=10)) == []


@pytest.mark.parametrize("faults", [(503, 500, 503), (1_000_000, 2_000_000), (-50, -1_000_000, 503)])
async def test_a_server_that_stops_in_the_middle_is_tried_again(s3_server, faults):
    content = os.urandom(5 * MEGABYTE)
    async with s3_server.behind(*faults) as endpoint:
        files = s3_server.store(endpoint=endpoint)
        kept = await files.keep(content)
    async with s3_server.behind(*faults) as endpoint:
        assert await s3_server.store(endpoint=endpoint).fetch(kept) == content


async def test_a_server_that_stays_away_is_given_up_and_nothing_of_the_file_is_there(s3_server, monkeypatch):
    monkeypatch.setitem(s3_store._RETRIES, "retry_timeout", timedelta(seconds=1))
    prefix = f"away/{ids.new()}"
    for fault in (503, 1_000_000):
        async with s3_server.behind(*[fault] * 1_000) as endpoint:
            began = time.monotonic()
            with pytest.raises(Unavailable, match=r"^unavailable: The file store does not answer\.$"):
                await s3_server.store(prefix, endpoint=endpoint).keep(bytes(2 * MEGABYTE))
            assert time.monotonic() - began < 15
    assert await s3_server.store(prefix).list_stored(datetime.max.replace(tzinfo=UTC)) == []


async def test_a_store_that_cannot_be_used_is_found_with_the_setting_that_is_wrong(s3_server, monkeypatch):
    monkeypatch.setitem(s3_store._RETRIES, "max_retries", 1)
    assert await s3_server.store().check() == f"{s3_server.endpoint}/bank-files/documents"
    for wrong, setting in (
        ({"bucket": "no-such-bucket"}, "files_s3_bucket"),
        ({"access_key": "AKIANOBODY"}, "files_s3_access_key"),
        ({"secret_key": "guessed"}, "files_s3_secret_key"),
        ({"endpoint": "http://127.0.0.1:9"}, "files_s3_endpoint"),
    ):
        files = s3_server.store(**wrong)
        with pytest.raises(FileStoreUnusable) as found:
            await files.check()
        assert found.value.setting == setting
        assert "guessed" not in str(found.value)
        with pytest.raises(Unavailable):
            await files.keep(b"a letter")
        with pytest.raises(Unavailable):
            await files.fetch(StoredFile(key="0" * 40, size_bytes=1, sha256=""))


async def test_a_role_of_the_machine_is_used_as_its_keys_change(s3_server, monkeypatch):
    """What the SDK gives is asked for again: a first key that nobody knows, then the right one."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    monkeypatch.setitem(s3_store._RETRIES, "max_retries", 1)
    given = s3_store.aws_credentials()()
    assert (given["access_key_id"], given["secret_access_key"]) == (s3_server.access_key, s3_server.secret_key)
    assert given["expires_at"] is not None
    assert timedelta(0) < given["expires_at"] - wall_now() <= timedelta(minutes=5)
    keys = [{**given, "secret_access_key": "old", "expires_at": wall_now() + timedelta(milliseconds=1)}, given]
    files = s3_server.store(f"role/{ids.new()}", credentials=lambda: keys.pop(0) if len(keys) > 1 else keys[0])
    with pytest.raises(Unavailable):
        await files.keep(b"a letter")
    assert await files.fetch(await files.keep(b"a letter")) == b"a letter"
