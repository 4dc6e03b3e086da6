"""Temporary URLs at the hosts of both APIs: what they let through, for how long, and what an altered one answers."""

import hashlib
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

from billfold.data_keys.keys import DataKeys
from billfold.documents.ports import FileStore
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.reports import downloads
from billfold.reports.downloads import temporary_url
from billfold.wiring.worker import ORPHAN_FILE_RETENTION, delete_orphan_files

SMALL_PART = 1000


async def keep_file(bank, customer, content, name="trades.csv"):
    """Keep a file of a customer and write it down."""
    made = await downloads.keep_file(
        bank, (UUID(customer), ids.new()), content, name=name, media_type="text/csv", at=await bank.now()
    )
    async with bank.pool.acquire() as conn, conn.transaction():
        assert await downloads.add_file(conn, made)
        assert not await downloads.add_file(conn, made)
    return made.file


def parts_of(bank):
    return [path for path in bank.settings.files_dir.rglob("*") if path.is_file()]


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(downloads, "PART_BYTES", SMALL_PART)


async def test_a_report_file_is_encrypted_in_parts_and_downloads_unchanged_from_both_hosts(
    customer_world, customer_desk, small_parts
):
    bank, content = customer_desk.bank, bytes(range(256)) * 10
    file = await keep_file(bank, customer_desk.team.customer, content)
    assert (file.size_bytes, file.sha256) == (2560, hashlib.sha256(content).hexdigest())
    stored = [path.read_bytes() for path in parts_of(bank)]
    assert len(stored) == 3
    assert not [each for each in stored if content[:16] in each]
    for desk in (customer_world.client, customer_desk):
        url = temporary_url(bank.vault, urlsplit(str(desk.http.base_url)).netloc, file, wall_now()).url
        answer = await desk.http.get(url)
        assert (answer.status_code, answer.content) == (200, content), answer.text
        assert answer.headers["content-type"] == "text/csv"
        assert answer.headers["content-disposition"] == 'attachment; filename="trades.csv"'
        assert answer.headers["content-length"] == "2560"
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")
        head = await desk.http.head(url)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "2560")


async def test_a_download_url_expires_after_ten_minutes_and_cannot_be_altered(customer_desk, other_customer):
    bank, wall = customer_desk.bank, wall_now()
    file, foreign = [await keep_file(bank, desk.team.customer, b"content") for desk in (customer_desk, other_customer)]
    host = urlsplit(customer_desk.base).netloc
    fresh = temporary_url(bank.vault, host, file, wall)
    assert fresh.expires_at - wall <= timedelta(minutes=10)
    fields = {name: value for name, (value,) in parse_qs(urlsplit(fresh.url).query).items()}

    async def answer(file_id=file.file_id, **changed):
        path = f"https://{host}/downloads/{file_id}"
        sent = await customer_desk.http.get(path, params={**fields, **changed})
        return sent.status_code, sent.content if sent.status_code == 200 else sent.json()["code"]

    invalid = (403, "download-url-invalid")
    assert await answer() == (200, b"content")
    assert await answer(file_id=foreign.file_id) == await answer(customer=foreign.customer_id) == invalid
    assert await answer(expires=int(fields["expires"]) + 60) == await answer(expires="never") == invalid
    assert await answer(signature="") == await answer(signature=fields["signature"][::-1]) == invalid
    assert await answer(signature=fields["signature"] + "=") == await answer(signature="\ud7ff€") == invalid
    assert await answer(file_id=str(file.file_id).upper()) == await answer(file_id="x") == invalid
    for age, code in ((600, (410, "download-url-expired")), (570, (200, b"content"))):
        url = temporary_url(bank.vault, host, file, wall - timedelta(seconds=age)).url
        later = await customer_desk.http.get(url)
        assert (later.status_code, later.content if later.is_success else later.json()["code"]) == code


async def test_downloading_a_lost_shredded_or_unknown_file_returns_404(customer_desk, small_parts):
    bank, host = customer_desk.bank, urlsplit(customer_desk.base).netloc
    customer = customer_desk.team.customer
    lost, shredded = [await keep_file(bank, customer, b"x" * 10) for _ in range(2)]
    never = downloads.ReportFile(
        **{name: getattr(lost, name) for name in lost.__struct_fields__ if name != "file_id"}, file_id=ids.new()
    )
    (part,) = await downloads.list_parts(bank.pool, lost.file_id)
    await bank.ports[FileStore].discard(part.key)
    await bank.ports[DataKeys].shred(bank.pool, UUID(customer), await bank.now())
    for file in (lost, shredded, never):
        answer = await customer_desk.http.get(temporary_url(bank.vault, host, file, wall_now()).url)
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


async def test_orphaned_parts_of_report_files_are_discarded_after_days(customer_desk, small_parts):
    bank = customer_desk.bank
    file = await keep_file(bank, customer_desk.team.customer, b"x" * 1500)
    await downloads.keep_file(
        bank, (file.customer_id, ids.new()), b"y", name="a.csv", media_type="text/csv", at=file.created_at
    )
    assert len(parts_of(bank)) == 3
    assert await delete_orphan_files(bank.pool, bank.ports[FileStore], wall_now() + ORPHAN_FILE_RETENTION) == 1
    assert await downloads.read_file(bank, file) == b"x" * 1500
