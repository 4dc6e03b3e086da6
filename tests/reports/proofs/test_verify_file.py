"""`billfold verify FILE`: what the bank has signed, offline; a changed digit is named."""

from __future__ import annotations

import io
import re
from datetime import timedelta

import msgspec
import pytest
import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.reports.proofs.test_attach import KEY, manifest_of, statement_pdf
from typst import compile as typeset

from billfold.cli.context import CliError
from billfold.reports.proofs import signed_files
from billfold.reports.proofs.cli import verify_files
from billfold.reports.proofs.signatures import DocumentKey, jwks_document, thumbprint

FIGURES = [("Opening value", "9,001.10"), ("Wire from Contoso", "3,344.66"), ("Closing value", "12,345.76")]
XML = "<Document>\n" + "".join(f"<Amt Ccy='USD'>{value}</Amt>\n" for _, value in FIGURES) + "</Document>\n"
CSV = "date,amount\r\n" + "".join(
    f"2026-10-0{n},{value.replace(',', '')}\r\n" for n, (_, value) in enumerate(FIGURES, 1)
)


def pdf(figures=FIGURES):
    rows = "".join(f"[{label}], [{value}]," for label, value in figures)
    source = f'#set document(title: "Statement")\n#set text(lang: "en")\n= October 31\n#table(columns: 2, {rows})'
    return typeset(source.encode(), pdf_standards=["a-3a", "ua-1"], timestamp=0)


@pytest.fixture
def verify_content(tmp_path, capsys):
    """Verify a file of this content with the bank's key; return the exit status and all that is said."""
    key = tmp_path / "document-keys.json"
    key.write_bytes(msgspec.json.encode(jwks_document([KEY.public])))

    def run(content, name="statement.pdf", side_file=None, keys=key):
        path = tmp_path / name
        path.write_bytes(content)
        if side_file is not None:
            (tmp_path / f"{name}.proof").write_bytes(side_file)
        try:
            verify_files([path], keys)
            status = 0
        except typer.Exit as end:
            status = end.exit_code
        except CliError as error:
            return 2, str(error)
        return status, " ".join("".join(capsys.readouterr()).split())

    return run


def test_verifying_a_signed_document_prints_its_manifest_in_plain_words(verify_content):
    status, said = verify_content(signed_files.attach(pdf(), manifest_of(*FIGURES), KEY))
    assert status == 0
    for part in (
        "Billfold Sandbox Bank has signed this document",
        "Brokerage statement for October 2026",
        "Acme, Inc.",
        "Pocket Operating",
        "Sat 2026-10-31 00:00:00 EDT",
        "journal entry 5, commit 7",
        "Closing value 12,345.76",
    ):
        assert part in said


def test_a_signature_made_after_key_revocation_is_reported(verify_content, tmp_path):
    facts = manifest_of(*FIGURES)
    content = signed_files.attach(pdf(), facts, KEY)
    for ago, status, part in ((0, 5, "The bank revoked the key"), (-1, 0, "Caution the key was revoked at")):
        revoked = KEY.public._replace(revoked_at=facts.at - timedelta(seconds=ago))
        keys = tmp_path / "revoked.json"
        keys.write_bytes(msgspec.json.encode(jwks_document([revoked])))
        found, said = verify_content(content, keys=keys)
        assert (found, part in said) == (status, True), said


@pytest.mark.parametrize("changed", range(len(FIGURES)))
def test_a_changed_digit_in_any_figure_is_reported(verify_content, changed):
    facts = manifest_of(*FIGURES)
    label, value = FIGURES[changed]
    for place in [at for at, each in enumerate(value) if each.isdigit()]:
        other = value[:place] + str((int(value[place]) + 3) % 10) + value[place + 1 :]
        figures = [(name, other if name == label else each) for name, each in FIGURES]

        proof = signed_files.attach(pdf(), facts, KEY)
        forged = pdf(figures) + proof[len(pdf()) :]
        status, said = verify_content(forged)
        assert (status, f"{label} reads {other}; the bank signed {value}." in said) == (1, True), said

        xml = signed_files.attach(XML.encode(), facts, KEY).replace(value.encode(), other.encode(), 1)
        status, said = verify_content(xml, "camt.xml")
        assert (status, f"{label} reads {other}; the bank signed {value}." in said) == (1, True), said

        side_file = signed_files.side_file(io.BytesIO(CSV.encode()), facts, KEY)
        plain, altered = value.replace(",", ""), other.replace(",", "")
        status, said = verify_content(CSV.replace(plain, altered).encode(), "trades.csv", side_file)
        day = f"2026-10-0{changed + 1}"
        assert (status, f"Line {changed + 2} reads '{day},{altered}'; the bank signed '{day},{plain}'." in said) == (
            1,
            True,
        )
        assert verify_content(CSV.encode(), "trades.csv", side_file)[0] == 0


def test_unsigned_foreign_and_truncated_files_have_distinct_exit_codes(verify_content, tmp_path):
    good = signed_files.attach(pdf(), manifest_of(*FIGURES), KEY)
    stranger = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
    other = DocumentKey(thumbprint(stranger.public_key()), KEY.active_at, stranger)
    assert verify_content(pdf())[0] == 3
    assert verify_content(b"", "empty")[0] == 3
    assert verify_content(good[: len(good) // 3])[0] == 3
    assert verify_content(good[:-300])[0] in {1, 3}
    assert verify_content(signed_files.attach(pdf(), manifest_of(*FIGURES), other))[0] == 4
    assert verify_content(signed_files.attach(XML.encode(), manifest_of(), KEY)[:-9], "a.xml")[0] in {1, 3}
    # Of another document, whose proof is valid by itself.
    proof = re.search(
        rb"billfold-proof (\S+)\n", signed_files.attach(statement_pdf("1.00"), manifest_of(*FIGURES), KEY)
    )
    assert proof is not None
    mixed = re.sub(rb"billfold-proof \S+\n", proof[0], good)
    assert verify_content(mixed)[0] == 1


def test_a_forged_or_missing_key_file_is_refused(verify_content, tmp_path):
    good = signed_files.attach(pdf(), manifest_of(*FIGURES), KEY)
    forged = tmp_path / "forged.json"
    stranger = Ed25519PrivateKey.from_private_bytes(b"s" * 32).public_key()
    keys = jwks_document([KEY.public._replace(key=stranger)])["keys"]
    forged.write_bytes(msgspec.json.encode({"keys": [{**keys[0], "kid": KEY.key_id}]}))
    assert verify_content(good, keys=forged) == (
        2,
        f"The key file is forged: the key that it calls {KEY.key_id} is {thumbprint(stranger)}.",
    )
    for content in (
        b"",
        b"{}",
        b"[]",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        b'{"keys":[1]}',
    ):
        forged.write_bytes(content)
        assert verify_content(good, keys=forged)[0] == 2
    assert verify_content(good, keys=None)[0] == 2
