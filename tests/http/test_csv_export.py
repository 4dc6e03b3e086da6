"""CSV exports are written in parts, in turn with other requests."""

import asyncio

from billfold.http.responses import ROWS_PER_PAGE, csv_stream
from billfold.platform.text import Separators


async def test_csv_pages_are_fetched_one_at_a_time_and_a_slow_reader_blocks_no_other(bank):
    made = []

    async def fetch(_, last):
        made.append("begin")
        await asyncio.sleep(0)
        made.append("end")
        first = 0 if last is None else last + 1
        return list(range(first, min(first + ROWS_PER_PAGE, 2 * ROWS_PER_PAGE + 1)))

    def chunks():
        return csv_stream(
            "n.csv", ["n"], fetch, cells_of=lambda row: [row], separators=Separators.COMMA, bank=bank
        ).chunks

    async def whole():
        return b"".join([each async for each in chunks()])

    slow = chunks()
    assert [await anext(slow), (await anext(slow))[:3]] == [b"n\r\n", b"0\r\n"]
    files = await asyncio.wait_for(asyncio.gather(whole(), whole(), whole()), 5)
    assert {len(each.splitlines()) for each in files} == {2 * ROWS_PER_PAGE + 2}
    assert made == ["begin", "end"] * (1 + 3 * 3)
