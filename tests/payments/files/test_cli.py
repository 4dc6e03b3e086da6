"""`billfold files`: list, show with the report, and ingest files."""

import asyncio
import re

import pytest
from tests.fixtures.cli import fetch
from tests.payments.ach.test_inbound_files import entry, file_of
from tests.support.fedwire import file_of_a_payment

from billfold.payments.ach.nacha.writer import write_file
from billfold.payments.files import exchange
from billfold.platform import ids


@pytest.fixture
def inbox(founded, tmp_path):
    """The folder into which an operator's connection puts files."""
    folder = tmp_path / "rails" / "wire" / "inbox"
    folder.mkdir(parents=True)
    return folder


def test_files_are_ingested_listed_and_shown_with_their_reports(billfold, inbox):
    assert billfold("files", "ingest") == (0, "✓ No file has arrived.")
    raw = file_of_a_payment("one", "999999999999")
    (inbox / "good.xml").write_bytes(raw)
    (inbox / "half.xml").write_bytes(raw[: len(raw) // 2])
    (inbox / ".unfinished.xml").write_bytes(b"half")
    assert billfold("files", "ingest") == (0, "✓ 2 files were ingested.")
    assert {path.name for path in inbox.iterdir()} == {".unfinished.xml"}
    assert billfold("files", "ingest") == (0, "✓ No file has arrived.")

    status, said = billfold("files", "list")
    assert (status, "good.xml" in said, "half.xml" in said) == (0, True, True)
    status, said = billfold("files", "list", "--rail", "wire", "--state", "refused")
    assert (status, "good.xml" in said, "half.xml" in said) == (0, False, True)
    status, said = billfold("files", "list", "--rail", "ACH")
    assert (status, said) == (0, "✓ There are no such files.")


def test_an_oversized_file_is_refused_unread(billfold, inbox, monkeypatch):
    monkeypatch.setattr(exchange, "FILE_BYTES_MAX", 2**20)
    with (inbox / "huge.xml").open("wb") as out:
        out.truncate(2**20 + 1)
    (inbox / "good.xml").write_bytes(file_of_a_payment("one", "999999999999"))
    assert billfold("files", "ingest") == (0, "✓ 2 files were ingested.")
    assert list(inbox.iterdir()) == []
    report = (inbox.parent / "refused" / "huge.xml.report.json").read_text()
    assert "larger than 1 MiB" in report


def test_a_refused_file_shows_line_reason_and_content(billfold, inbox):
    raw = file_of_a_payment("one", "999999999999").replace(b'"USD"', b'"EUR"')
    (inbox / "euros.xml").write_bytes(raw)
    billfold("files", "ingest")
    listed = billfold("files", "list", "--state", "REFUSED")[1].split()
    (file_id,) = [word for word in listed if word.count("-") == 4]

    status, said = billfold("files", "show", file_id)
    assert status == 0
    assert '"line": 3' in said
    assert '"reason": "currency is EUR, not USD"' in said
    status, said = billfold("files", "show", file_id, "--content")
    assert (status, 'Ccy="EUR"' in said) == (0, True)
    status, said = billfold("doctor")
    assert (status, "is refused since" in said, f"files show {file_id}" in said.replace("\n", " ")) == (1, True, True)


def test_a_waiting_file_is_reported_with_its_line_and_retried(billfold, founded, tmp_path, database_dsn):
    folder = tmp_path / "rails" / "ach" / "inbox"
    folder.mkdir(parents=True)
    (folder / "odd.ach").write_bytes(write_file(file_of(entry(1), entry(2, amount=6_66))))
    odd = "ALTER TABLE suspense_item ADD CONSTRAINT odd CHECK (amount <> 666)"
    asyncio.run(fetch(database_dsn, odd))
    assert billfold("files", "ingest")[0] == 0
    assert billfold("files", "ingest") == (0, "✓ No file has arrived.")
    said = billfold("files", "list")[1]
    assert re.search("ARRIVED, waiting: line 4: (CheckViolation|InternalServer)Error", said)  # as a cluster has it
    (file_id,) = [word for word in said.split() if word.count("-") == 4]
    status, said = billfold("doctor")
    assert (status, "odd.ach is not booked yet, line 4" in said, f"files retry {file_id}" in said) == (1, True, True)
    assert "check constraint" in said, "for engineers"
    status, said = billfold("files", "retry", file_id)
    assert (status, "odd.ach still waits: line 4" in said, "Next:" in said) == (1, True, True)
    assert '"tries": 2' in billfold("files", "show", file_id)[1]
    asyncio.run(fetch(database_dsn, "ALTER TABLE suspense_item DROP CONSTRAINT odd"))
    assert billfold("files", "retry", file_id) == (0, "✓ odd.ach is PROCESSED.")
    assert "rail files none fails" in billfold("doctor")[1]


def test_an_unknown_rail_file_is_refused_with_a_next_step(billfold, founded):
    status, said = billfold("files", "show", str(ids.new()))
    assert (status, "billfold files list" in said) == (1, True), said
    assert billfold("files", "retry", str(ids.new())) == (status, said)
