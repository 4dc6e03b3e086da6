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
    """An empty store."""
    if request.param == "folder":
        return LocalFileStore(folder)
    return request.getfixturevalue("s3_server").store(f"documents/{ids.new()}")


async def test_a_stored_file_is_returned_unchanged(files):
    contents = (b"a letter", b"", os.urandom(50 * MEGABYTE - 1))

    for content in contents:
        kept = await files.keep(content)
        assert await files.fetch(kept) == content
        assert kept.size_bytes == len(content)
        assert len(kept.sha256) == 64


async def test_storing_the_same_content_twice_creates_two_files(files):
    one, other = await asyncio.gather(files.keep(b"same"), files.keep(b"same"))

    assert one.key != other.key
    assert one.sha256 == other.sha256


async def test_discarding_a_file_is_idempotent(files):
    kept = await files.keep(b"old")

    await files.discard(kept.key)
    await files.discard(kept.key)

    with pytest.raises(StoredFileMissing):
        await files.fetch(kept)


@pytest.mark.parametrize("key", ["../../etc/passwd", "", "ab/cd", "A" * 40, "0" * 39, "/" + "0" * 39])
async def test_a_key_that_points_outside_the_file_store_is_refused(files, key):
    with pytest.raises(StoredFileMissing, match="not the name of a file"):
        await files.fetch(StoredFile(key=key, size_bytes=0, sha256=""))
    with pytest.raises(StoredFileMissing, match="not the name of a file"):
        await files.discard(key)


async def test_a_stored_file_is_readable_only_by_its_owner_and_leaves_no_partial_file(folder):
    await LocalFileStore(folder).keep(b"secret")

    found = [path for path in folder.rglob("*") if path.is_file()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in found] == [0o600]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_a_file_that_does_not_fit_on_the_disk_leaves_no_partial_file(folder):
    files, limits = LocalFileStore(folder), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            await files.keep(b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path for path in folder.rglob("*") if path.is_file()] == []


async def test_a_modified_stored_file_is_not_returned(folder):
    kept = await LocalFileStore(folder).keep(b"original")
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    path.write_bytes(b"tampered")

    with pytest.raises(StoredFileMissing, match="not what was kept"):
        await LocalFileStore(folder).fetch(kept)


async def test_old_and_unfinished_files_are_listed(folder):
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


async def test_a_modified_s3_object_is_not_returned(s3_server):
    files = s3_server.store()
    for other in (b"tampered", b"another size"):
        kept = await files.keep(b"original")
        await s3_server.write(f"documents/{kept.key}", other)

        with pytest.raises(StoredFileMissing, match="not what was kept"):
            await files.fetch(kept)


async def test_s3_objects_over_one_page_are_listed_without_foreign_ones(s3_server):
    files, wanted = s3_server.store("many"), []
    for _ in range(21):
        wanted += [each.key for each in await asyncio.gather(*(files.keep(b"x") for _ in range(50)))]
    for other in ("many/readme.txt", f"many/old/{wanted[0]}", f"more/{wanted[0]}", f"manyfold/{wanted[0]}"):
        await s3_server.write(other, b"of somebody else")

    assert await files.list_stored(wall_now() + timedelta(minutes=1)) == sorted(wanted)
    assert await files.list_stored(wall_now() - timedelta(minutes=10)) == []


@pytest.mark.parametrize("faults", [(503, 500, 503), (1_000_000, 2_000_000), (-50, -1_000_000, 503)])
async def test_an_interrupted_s3_request_is_retried(s3_server, faults):
    content = os.urandom(5 * MEGABYTE)
    async with s3_server.behind(*faults) as endpoint:
        files = s3_server.store(endpoint=endpoint)
        kept = await files.keep(content)
    async with s3_server.behind(*faults) as endpoint:
        assert await s3_server.store(endpoint=endpoint).fetch(kept) == content


async def test_an_unreachable_s3_server_raises_unavailable_and_leaves_no_partial_file(s3_server, monkeypatch):
    monkeypatch.setitem(s3_store._RETRIES, "retry_timeout", timedelta(seconds=1))
    prefix = f"away/{ids.new()}"
    for fault in (503, 1_000_000):
        async with s3_server.behind(*[fault] * 1_000) as endpoint:
            began = time.monotonic()
            with pytest.raises(Unavailable, match=r"^unavailable: The file store does not answer\.$"):
                await s3_server.store(prefix, endpoint=endpoint).keep(bytes(2 * MEGABYTE))
            assert time.monotonic() - began < 15
    assert await s3_server.store(prefix).list_stored(datetime.max.replace(tzinfo=UTC)) == []


async def test_an_unusable_file_store_is_reported_with_its_wrong_setting(s3_server, monkeypatch):
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


async def test_instance_role_credentials_are_refreshed(s3_server, monkeypatch):
    """The SDK requests credentials again: first it gets an unknown key, then the right one."""
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
