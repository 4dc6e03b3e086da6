"""File contents are sealed with the bank's key, and a repeated file is recognized."""

from tests.payments.ach.test_inbound_files import Room, entry, file_of
from tests.support.whole_bank import VAULT

from billfold.data_keys.keys import bank_key
from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.files import store
from billfold.payments.files.store import open_content, read_content
from billfold.verify.runner import verify_bank

_UNFINISHED = "UPDATE rail_file SET state = 'ARRIVED', done_at = NULL, report = NULL WHERE file_id = $1"


async def test_an_unfinished_rail_file_is_resumed_and_a_duplicate_recognized(bank):
    room, raw = Room(bank), write_file(file_of(entry(1), entry(2)))
    await room.put("one.ach", raw)
    (file,) = await store.list_files(bank.pool, rail="ACH")
    stored = await store.get_content(bank.pool, file.file_id)
    assert (raw[:94] in stored, file.size_bytes) == (False, len(raw))
    assert await read_content(bank, file.file_id) == raw

    await bank.pool.execute(_UNFINISHED, file.file_id)
    await room.put("one.ach", raw)
    for name in ("one.ach", "again.ach"):
        await room.put(name, raw)
        assert "arrived as one.ach" in room.report(name, refused=True)["mistakes"][0]["reason"]
    (now,) = await store.list_files(bank.pool, rail="ACH")
    assert (now.state, now.digest, await read_content(bank, now.file_id)) == ("PROCESSED", file.digest, raw)
    assert await bank.pool.fetchval("SELECT count(*) FROM suspense_item") == 2


async def test_verify_reports_altered_or_moved_file_content_even_with_a_matching_hash(bank):
    room = Room(bank)
    for number in (1, 2):
        await room.put(f"{number}.ach", write_file(file_of(entry(number))))
    one, two = await store.list_files(bank.pool, rail="ACH")
    stored = await store.get_content(bank.pool, one.file_id)
    key = await bank_key(bank)
    assert open_content(key, one.file_id, stored)
    for content in (stored[:-1] + bytes([stored[-1] ^ 1]), await store.get_content(bank.pool, two.file_id)):
        async with bank.pool.acquire() as conn:
            await conn.execute(
                "UPDATE rail_file SET content = $2, sha256 = sha256($2) WHERE file_id = $1", one.file_id, content
            )
            report = await verify_bank(conn, vault=VAULT)
            assert [(each.table, each.key) for each in report.findings] == [("rail_file", {"file_id": one.file_id})]
            assert (await verify_bank(conn)).is_clean, "without keys nothing is opened"
