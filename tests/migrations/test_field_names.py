"""Migration 0020 renames what the database holds and keeps what was stored."""

import hashlib

from billfold.migrations import runner

BEFORE = 19
STATES = (
    ("MADE", "OUT", "CREATED"),
    ("HANDED", "OUT", "TRANSMITTED"),
    ("ARRIVED", "IN", "ARRIVED"),
    ("TAKEN", "IN", "PROCESSED"),
    ("REFUSED", "IN", "REFUSED"),
)
FILE = """
INSERT INTO rail_file (file_id, rail, direction, name, content, sha256, state, report, created_at,
                       done_at)
VALUES (gen_random_uuid(), 'ACH', $1, $2, '', $3, $2, $4, now(),
        CASE WHEN $2 NOT IN ('MADE', 'ARRIVED') THEN now() END)
"""
FILES = "SELECT name, state, report FROM rail_file"


def report_of(state: str) -> str:
    return f'{{"file":"a","state":"{state}","items":[{{"reason":"\\"state\\":\\"TAKEN\\""}}]}}'


async def test_states_of_files_are_renamed_in_rows_and_reports_and_back(empty):
    await runner.up(empty)
    await runner.down(empty, to=BEFORE)
    for state, direction, _ in STATES:
        sha256 = hashlib.sha256(state.encode()).digest()
        await empty.execute(FILE, direction, state, sha256, report_of(state))

    await runner.up(empty)
    expected = {old: (new, report_of(new)) for old, _, new in STATES}
    assert {name: tuple(row) for name, *row in await empty.fetch(FILES)} == expected

    await runner.down(empty, to=BEFORE)
    expected = {old: (old, report_of(old)) for old, _, _ in STATES}
    assert {name: tuple(row) for name, *row in await empty.fetch(FILES)} == expected
