"""PDFs are accessible and archivable with any letters, and the same bytes each time."""

import io
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pypdf import PdfReader
from tests.support.maven import jars_of

from billfold.platform import ids
from billfold.reports.entries.types import LedgerPosition
from billfold.reports.printing import (
    PrintedBank,
    PrintedChart,
    PrintedColumn,
    PrintedDocument,
    PrintedTable,
    print_document,
    printed,
)
from billfold.reports.proofs.signatures import DocumentKey, Manifest
from billfold.reports.proofs.signed_files import attach

SOURCE = Path(__file__).with_name("Vera.java")
NAMES = (
    "=1+1",
    "株式会社山田商事",
    "한국은행",
    "Дружба",
    "שלום",
    "مؤسسة",
    "ขนมไทย",
    "தமிழ்",
    "#[*bold*] $x$ \\",
    "Ωμέγα",
)
UNPRINTABLE = "\x00😀\u202e\ue000\U00020000"
DOCUMENT = PrintedDocument(
    title="Brokerage statement",
    subtitle="June 2025",
    reference="•••• 4821",
    made_on=date(2025, 7, 1),
    bank=PrintedBank(name="First Bank", address="1 Bill Street", phone="+1 212 555 0100"),
    recipient=[printed("Wolfeschlegelsteinhausenbergerdorff" * 9)],
    details=[("Pocket", printed(UNPRINTABLE))],
    summary=[("Opening value", "$0.00"), ("Closing value", "$92,233,720,368,547,758.07")],
    charts=[PrintedChart(title="Value", caption="", kind="area", points=[0, 1], ends=("", ""), alt="rising")],
    tables=[
        PrintedTable(
            heading="Activity", columns=[PrintedColumn("Details", grows=True)], rows=[[each] for each in NAMES]
        ),
        PrintedTable(heading="Holdings", columns=[PrintedColumn("CUSIP")], rows=[], empty="Nothing is held."),
    ],
    notes=["A note."],
)


@pytest.fixture(scope="module")
def verapdf(tmp_path_factory):
    """The folder of the validator's jars."""
    return jars_of("org.verapdf", "validation-model", "1.26.2", tmp_path_factory)


def test_a_signed_document_is_valid_pdf_a_and_pdf_ua_in_verapdf(verapdf, tmp_path):
    at = datetime(2025, 7, 1, tzinfo=UTC)
    manifest = Manifest(
        bank="First Bank",
        document="A statement",
        customer_id=ids.new(),
        customer="Acme",
        pockets=(),
        at=at,
        position=LedgerPosition(1, 1, "00"),
        figures=(),
    )
    path = tmp_path / "statement.pdf"
    path.write_bytes(attach(print_document(DOCUMENT), manifest, DocumentKey("key", at, Ed25519PrivateKey.generate())))
    words = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{verapdf}/*", str(SOURCE), str(path)]
    answer = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout
    assert answer.split() == ["3a", "true", "ua1", "true"]


def test_a_pdf_prints_any_script_and_is_reproducible():
    pdf = print_document(DOCUMENT)
    assert print_document(msgspec.structs.replace(DOCUMENT)) == pdf
    text = "".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)
    for name in ("=1+1", "株式会社山田商事", "한국은행", "Дружба", "#[*bold*] $x$ \\", "Ωμέγα"):
        assert name in text
    assert "��" in text
    assert "\u202e" not in text
