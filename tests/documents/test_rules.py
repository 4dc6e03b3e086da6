"""The type of a file is checked by its first bytes, its name and its size."""

import pytest

from billfold.documents.rules import check_file, parse_file_name
from billfold.platform.errors import BillfoldError, InvalidInput
from billfold.platform.file_kinds import FileKind, max_file_bytes

PDF, PNG, JPEG = FileKind.PDF, FileKind.PNG, FileKind.JPEG


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (None, None),
        ("attachment", None),
        ('attachment; filename="statement.pdf"', "statement.pdf"),
        ("attachment; filename=statement.pdf", "statement.pdf"),
        ('attachment; filename="../../x.pdf"', "x.pdf"),
        (r'attachment; filename="C:\\temp\\x.pdf"', "x.pdf"),
        (r'attachment; filename="a \"b\".pdf"', 'a "b".pdf'),
        ("attachment; filename*=UTF-8''%e2%82%ac%20rates.pdf", "€ rates.pdf"),
    ],
)
def test_a_file_name_is_kept_without_folders(sent, name):
    assert parse_file_name(sent) == name


@pytest.mark.parametrize(
    "sent",
    [
        'attachment; filename=".."',
        'attachment; filename="x/"',
        f'attachment; filename="{"x" * 256}"',
        "attachment; filename*=UTF-8''a%00.pdf",
        "attachment; filename*=UTF-8''a%E2%80%AEfdp.exe",
        "attachment; filename*=UTF-8''%D8%9Cx.pdf",
        "attachment; filename*=UTF-8''a%F3%A0%81%81.pdf",
    ],
)
def test_a_deceptive_file_name_is_refused(sent):
    with pytest.raises(InvalidInput, match="content-disposition"):
        parse_file_name(sent)


@pytest.mark.parametrize(
    ("content", "kind", "name", "code"),
    [
        (b"", PDF, None, "invalid-input"),
        (b"<html>", PDF, "x.pdf", "unsupported-media-type"),
        (b"%PDF-1.7", PNG, None, "unsupported-media-type"),
        (b"%PDF-1.7", PDF, "x.png", "unsupported-media-type"),
        (b"\xff\xd8\xff", JPEG, "x.pdf", "unsupported-media-type"),
        (b"%PDF-" + bytes(5 * 1024 * 1024), PDF, None, "payload-too-large"),
    ],
    ids=["empty", "html", "pdf as png", "named png", "named pdf", "too large"],
)
def test_a_file_whose_content_name_and_type_disagree_is_refused(content, kind, name, code):
    with pytest.raises(BillfoldError) as refused:
        check_file(content, kind, "PASSPORT", name=name)
    assert refused.value.code == code


def test_file_extensions_match_their_type_in_any_spelling():
    check_file(b"\xff\xd8\xff", JPEG, "OTHER", name="photo.JPEG")
    check_file(b"\xff\xd8\xff", JPEG, "OTHER", name="photo.jpg")
    check_file(b"%PDF-1.4", PDF, "OTHER", name="statement")


def test_a_profile_picture_has_a_lower_size_limit_than_a_statement():
    assert max_file_bytes(PDF, "WIRE_COUNTERPARTY_VERIFICATION") == 52_428_799
    assert max_file_bytes(PNG, "WIRE_COUNTERPARTY_VERIFICATION") == 10 * 1024 * 1024
    assert max_file_bytes(PDF, "PASSPORT") == max_file_bytes(PNG, "SELFIE") == 5 * 1024 * 1024
