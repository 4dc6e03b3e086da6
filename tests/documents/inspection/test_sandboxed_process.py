"""Files that say one thing and do another are refused, and what looks into them stays small."""

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pikepdf
import pytest
from PIL import Image
from reportlab.pdfgen import canvas

from billfold.documents.inspection.child import INSPECTORS, UnsafeContent
from billfold.documents.inspection.sandboxed_process import SubprocessFileInspector
from billfold.documents.ports import FileKind, UploadRejected

PDF, PNG, JPEG = FileKind.PDF, FileKind.PNG, FileKind.JPEG


def a_pdf(pages: int = 1) -> bytes:
    out = io.BytesIO()
    drawing = canvas.Canvas(out)
    for number in range(pages):
        drawing.drawString(72, 720, f"Page {number}")
        drawing.showPage()
    drawing.save()
    return out.getvalue()


def a_picture(form: str, width: int = 20, height: int = 10) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "navy").save(out, form)
    return out.getvalue()


def pdf_with(change: Callable[[pikepdf.Pdf], object], **saving: Any) -> bytes:
    out = io.BytesIO()
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        change(pdf)
        pdf.save(out, **saving)
    return out.getvalue()


def opens_with(action: dict[str, object]) -> Callable[[pikepdf.Pdf], object]:
    def change(pdf: pikepdf.Pdf) -> None:
        pdf.Root.OpenAction = pdf.make_indirect(pikepdf.Dictionary(action))

    return change


def _attach(pdf: pikepdf.Pdf) -> None:
    pdf.attachments["x"] = b"MZ"


def _explode(pdf: pikepdf.Pdf) -> None:
    packed = zlib.compress(zlib.compress(bytes(1 << 30), 9), 9)
    stream = pikepdf.Stream(pdf, packed)
    stream.Filter = pikepdf.Array([pikepdf.Name.FlateDecode, pikepdf.Name.FlateDecode])
    pdf.pages[0].Contents = pdf.make_indirect(stream)


def huge_png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "kind"),
    [(a_pdf(), PDF), (a_pdf(12), PDF), (a_picture("PNG"), PNG), (a_picture("JPEG"), JPEG)],
    ids=["a page", "pages", "png", "jpeg"],
)
def test_an_honest_file_is_taken(content, kind):
    INSPECTORS[kind.name](content)


async def test_the_result_of_the_inspection_process_is_returned():
    inspection = SubprocessFileInspector()

    await inspection.inspect(a_picture("PNG"), PNG)
    with pytest.raises(UploadRejected, match=r"^The file is no PNG\.$"):
        await inspection.inspect(a_picture("JPEG"), PNG)


RAW = {"compress_streams": False, "stream_decode_level": pikepdf.StreamDecodeLevel.none}
BAD: dict[str, tuple[Callable[[], bytes], FileKind, str]] = {
    "a picture of another form": (lambda: a_picture("JPEG"), PNG, "is no PNG"),
    "no picture at all": (lambda: b"GIF89a" + bytes(40), JPEG, "is no JPEG"),
    "half a picture": (lambda: a_picture("PNG", 400, 400)[:300], PNG, "damaged"),
    "too many pixels": (huge_png, PNG, "50000 x 50000"),
    "half a PDF": (lambda: a_pdf()[:300], PDF, "no end"),
    "noise in a PDF": (lambda: b"%PDF-1.7\n" + bytes(500) + b"\n%%EOF", PDF, "damaged"),
    "a page of HTML after it": (lambda: a_pdf() + b"<script>alert(1)</script>" * 9, PDF, "after it"),
    "a password": (
        lambda: pdf_with(lambda _: None, encryption=pikepdf.Encryption(owner="a", user="b")),
        PDF,
        "protected",
    ),
    "a lock without a password": (
        lambda: pdf_with(lambda _: None, encryption=pikepdf.Encryption(owner="a", user="")),
        PDF,
        "protected",
    ),
    "a script": (
        lambda: pdf_with(opens_with({"/S": pikepdf.Name.JavaScript, "/JS": "app.alert(1)"})),
        PDF,
        "JavaScript",
    ),
    "a program to start": (
        lambda: pdf_with(opens_with({"/S": pikepdf.Name.Launch, "/F": "calc.exe"})),
        PDF,
        "starts a program",
    ),
    "a file inside": (lambda: pdf_with(_attach), PDF, "a file inside"),
    "too many pages": (lambda: a_pdf(301), PDF, "301 pages"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_is_refused_with_the_reason(name):
    make, kind, told = BAD[name]

    with pytest.raises(UnsafeContent, match=told):
        INSPECTORS[kind.name](make())


async def test_a_file_that_explodes_is_refused_where_it_does_no_harm():
    bomb = pdf_with(_explode, **RAW)
    assert len(bomb) < 5_000

    with pytest.raises(UploadRejected):
        await SubprocessFileInspector().inspect(bomb, PDF)
