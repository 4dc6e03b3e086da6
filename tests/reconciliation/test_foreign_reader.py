"""Prowide, a third-party library of ISO 20022, reads the sandbox's statements, and we read what it writes."""

import subprocess
from datetime import date
from pathlib import Path

import pytest
from tests.support.maven import jars_of

from billfold.platform.calendars import Calendars
from billfold.reconciliation.readers import read_statements
from billfold.sandbox.rails.correspondent import BookLine
from billfold.sandbox.rails.statements import write_camt053, write_semt002

SOURCE = Path(__file__).with_name("ProwideStatements.java")
DAY = date(2025, 6, 3)
LINES = [BookLine("20250603MMQFMP01000001", 100_000_00, "WIRE", "W-1"), BookLine("ach-1", -5, "ACH", "091000010000001")]
UNITS = {"912797PT8": 1_002, "912797QB6": -3}


@pytest.fixture(scope="module")
def prowide(tmp_path_factory):
    """The folder of the library's jars."""
    return jars_of("com.prowidesoftware", "pw-iso20022", "SRU2025-10.3.5", tmp_path_factory)


def test_prowide_reads_and_writes_the_statements_of_the_sandbox(prowide, tmp_path):
    written = {
        "camt053": write_camt053("RESERVE-1", DAY, 50, LINES),
        "semt002": write_semt002("SAFE-1", DAY, UNITS),
    }
    for name, content in written.items():
        (tmp_path / f"{name}.xml").write_bytes(content)
    words = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{prowide}/*", str(SOURCE), str(tmp_path)]
    found = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout
    assert found.splitlines() == [
        "account RESERVE-1",
        "balance OPBD 0.50",
        "balance CLBD 100000.45",
        "entry W-1 CRDT 100000.00 BOOK 2025-06-03 WIRE",
        "entry 091000010000001 DBIT 0.05 BOOK 2025-06-03 ACH",
        "safe SAFE-1 2025-06-03 154",
        "held 912797PT8 LONG 100200",
        "held 912797QB6 SHOR 300",
    ]
    for name, content in written.items():
        again = (tmp_path / f"{name}.prowide.xml").read_bytes()
        assert again != content
        assert read_statements(again, Calendars()) == read_statements(content, Calendars())
