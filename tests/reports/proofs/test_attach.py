"""Proofs in files: every byte is signed, the file stays what it was, and it is the same when it is made again."""

from __future__ import annotations

import hashlib
import io
from datetime import UTC, datetime
from uuid import UUID

import pikepdf
import pytest
import typst
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from lxml import etree
from pypdf import PdfReader

from billfold.reports.entries.types import LedgerPosition
from billfold.reports.proofs import signed_files
from billfold.reports.proofs.signatures import (
    DOCUMENT,
    DocumentKey,
    Figure,
    Manifest,
    NamedPocket,
    SignedManifest,
    Unproven,
    thumbprint,
    verify,
)

_AT = datetime(2026, 10, 31, 4, tzinfo=UTC)
_PRIVATE = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
KEY = DocumentKey(thumbprint(_PRIVATE.public_key()), _AT, _PRIVATE)


def manifest_of(*figures: tuple[str, str]) -> Manifest:
    return Manifest(
        bank="Billfold Sandbox Bank",
        document="Brokerage statement for October 2026",
        customer_id=UUID(int=1),
        customer="Acme, Inc.",
        pockets=(NamedPocket(UUID(int=2), "Operating"),),
        at=_AT,
        position=LedgerPosition(7, 5, "ab" * 32),
        figures=tuple(Figure(*each) for each in figures),
    )


def signed(content: bytes, side_file: bytes | None = None) -> SignedManifest:
    """The signed statement about a file, checked against its bytes."""
    file = signed_files.read(content, side_file)
    found, _ = verify(file.proof or "", [KEY.public], DOCUMENT, SignedManifest)
    assert found.content.sha256 == hashlib.sha256(file.content).hexdigest()
    return found


def statement_pdf(value: str) -> bytes:
    source = f'#set document(title: "Statement")\n#set text(lang: "en")\n= Statement\nClosing value {value}'
    return typst.compile(source.encode(), pdf_standards=["a-3a", "ua-1"], timestamp=int(_AT.timestamp()))


def test_a_pdf_with_an_embedded_proof_remains_the_same_document():
    plain, facts = statement_pdf("12,345.76"), manifest_of(("Closing value", "12,345.76"))
    proven = signed_files.attach(plain, facts, KEY)

    assert proven == signed_files.attach(statement_pdf("12,345.76"), facts, KEY)
    assert proven.startswith(plain)
    assert signed(proven).manifest == facts
    with pikepdf.open(io.BytesIO(proven)) as pdf:
        assert pdf.check_pdf_syntax() == []
        file = pdf.Root.AF[0]
        assert file.AFRelationship == "/Supplement"
        assert file.UF == file.F == pdf.Root.Names.EmbeddedFiles.Names[0]
        assert bytes(file.EF.F.read_bytes()).startswith(signed_files.MARKER)
        assert pdf.Root.StructTreeRoot is not None
        assert pdf.Root.MarkInfo.Marked
    page = PdfReader(io.BytesIO(proven), strict=True).pages[0]
    assert "Closing value 12,345.76" in page.extract_text()


def test_an_xml_file_carries_its_proof_after_the_last_element(tmp_path):
    plain = b'<?xml version="1.0" encoding="UTF-8"?>\n<Document>\n<Amt Ccy="USD">12345.76</Amt>\n</Document>\n'
    facts = manifest_of(("Closing balance", "12345.76"))
    proven = signed_files.attach(plain, facts, KEY)
    long = tmp_path / "camt.xml"
    long.write_bytes(plain)
    with long.open("r+b") as file:
        signed_files.append_to(file, facts, KEY)

    assert long.read_bytes() == proven
    assert proven.startswith(plain)
    assert signed(proven).content.lines_per_mark == 1
    root = etree.fromstring(proven)
    assert etree.tostring(root, with_tail=False) == etree.tostring(etree.fromstring(plain))


def test_a_format_without_comments_has_its_proof_in_a_side_file():
    content = b"date,amount\r\n" + b"2026-10-01,1.00\r\n" * 9000
    facts = manifest_of(("Sum", "9000.00"))
    side_file = signed_files.side_file(io.BytesIO(content), facts, KEY)

    found = signed(content, side_file)
    assert found.content.lines_per_mark == 3
    assert len(found.content.marks) == 2 * signed_files.MARK_BYTES * 3001
    assert signed_files.read(content).proof is None
    assert signed_files.read(content, b"something else").proof is None


@pytest.mark.parametrize("make", [lambda: statement_pdf("1.00"), lambda: b"<a>1.00</a>"], ids=["pdf", "xml"])
def test_changing_any_byte_of_a_signed_document_is_detected(make):
    proven = signed_files.attach(make(), manifest_of(("Closing value", "1.00")), KEY)
    for place in range(0, len(proven), max(1, len(proven) // 400)):
        changed = bytearray(proven)
        changed[place] ^= 1
        with pytest.raises((Unproven, AssertionError)):
            signed(bytes(changed))
    for altered in (proven[:-1], proven + b"\n", proven + proven[len(proven) // 2 :], b"%" + proven):
        with pytest.raises((Unproven, AssertionError)):
            signed(altered)
