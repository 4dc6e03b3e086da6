"""Files with hidden or active content are refused, and their inspection uses little memory."""

import io
import random
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from datetime import date
from functools import cache
from typing import Any

import pikepdf
import pytest
from PIL import Image
from pypdf import PdfWriter
from pypdf.actions import JavaScript
from pypdf.annotations import Link
from reportlab.pdfgen import canvas

from billfold.documents import inspection
from billfold.documents.inspection import SubprocessFileInspector
from billfold.documents.inspection_child import INSPECTORS, UnsafeContent
from billfold.documents.pdf import typeset
from billfold.documents.ports import UploadRejected
from billfold.platform.errors import Unavailable
from billfold.platform.file_kinds import FileKind

PDF, PNG, JPEG = FileKind.PDF, FileKind.PNG, FileKind.JPEG


def a_pdf(pages: int = 1) -> bytes:
    out = io.BytesIO()
    drawing = canvas.Canvas(out)
    for number in range(pages):
        drawing.drawString(72, 720, f"Page {number}")
        drawing.showPage()
    drawing.save()
    return out.getvalue()


def a_picture(form: str, width: int = 20, height: int = 10, **saving: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "navy").save(out, form, **saving)
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
    stream = pikepdf.Stream(pdf, twice_packed())
    stream.Filter = pikepdf.Array([pikepdf.Name.FlateDecode, pikepdf.Name.FlateDecode])
    pdf.pages[0].Contents = pdf.make_indirect(stream)


@cache
def twice_packed() -> bytes:
    """Return a gigabyte of zeros in a few hundred bytes."""
    return zlib.compress(zlib.compress(bytes(1 << 30), 9), 9)


def huge_png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")


async def test_the_result_of_the_inspection_process_is_returned():
    inspection = SubprocessFileInspector()

    await inspection.inspect(a_picture("PNG"), PNG)
    with pytest.raises(UploadRejected, match=r"^The file is not a PNG\.$"):
        await inspection.inspect(a_picture("JPEG"), PNG)


JPX = pikepdf.Name.JPXDecode
RAW = {"compress_streams": False, "stream_decode_level": pikepdf.StreamDecodeLevel.none}


def annotated(subtype: str, **entries: object) -> Callable[[], bytes]:
    """Return the parts of a PDF whose page has an annotation of this subtype."""

    def change(pdf: pikepdf.Pdf) -> None:
        annotation = pikepdf.Dictionary(Type=pikepdf.Name.Annot, Subtype=pikepdf.Name(f"/{subtype}"), Rect=[0, 0, 9, 9])
        for name, value in entries.items():
            annotation[f"/{name}"] = value
        pdf.pages[0].Annots = pikepdf.Array([annotation])

    return lambda: pdf_with(change)


def acting(action: str, **entries: object) -> Callable[[], bytes]:
    """Return the parts of a PDF with an open action of this type."""
    fields = {f"/{name}": value for name, value in entries.items()}
    return lambda: pdf_with(opens_with({"/S": pikepdf.Name(f"/{action}"), **fields}))


def by_pypdf(change: Callable[[PdfWriter], object]) -> bytes:
    out, writer = io.BytesIO(), PdfWriter()
    writer.add_blank_page(width=72, height=72)
    change(writer)
    writer.write(out)
    return out.getvalue()


def by_hand(
    *objects: bytes, catalog: bytes = b"", page: bytes = b"/Resources<<>>", header: bytes = b"%PDF-1.7\n"
) -> bytes:
    """Return a hand-written PDF of one page."""
    numbered = (
        b"<</Type/Catalog/Pages 2 0 R" + catalog + b">>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]" + page + b">>",
        *objects,
    )
    made, offsets = header, []
    for number, each in enumerate(numbered, 1):
        offsets.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size, start = len(numbered) + 1, len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    return made + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, start)


def in_an_earlier_state(objects: bytes) -> bytes:
    """Return a PDF whose latest revision no longer contains the content of an earlier one."""
    first = by_hand(objects, catalog=b"/OpenAction 4 0 R")
    start, at = first.rindex(b"xref\n0"), len(first)
    update = b"4 0 obj\n<<>>\nendobj\n"
    table = b"xref\n4 1\n%010d 00000 n \n" % at
    trailer = b"trailer\n<</Size 5/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF\n" % (start, at + len(update))
    return first + update + table + trailer


def picture_of(filters: bytes, side: int = 9, packed: bytes = b"x") -> bytes:
    size = b"/Width %d/Height %d/BitsPerComponent 1/ColorSpace/DeviceGray" % (side, side)
    head = b"<</Subtype/Image%s/Filter%s/Length %d>>" % (size, filters, len(packed))
    return head + b"stream\n%s\nendstream" % packed


def unreferenced_object_stream() -> bytes:
    packed = zlib.compress(b"9 0 <</S/JS/Type/Action>>")
    stream = b"<</Type/XObject/Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(packed), packed)
    return by_hand(stream)


def an_archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("run.exe", b"MZ" * 50)
    return out.getvalue()


def in_png_text(content: bytes) -> bytes:
    made = a_picture("PNG")
    body = b"Comment\x00" + content
    chunk = struct.pack(">I", len(body)) + b"tEXt" + body + struct.pack(">I", zlib.crc32(b"tEXt" + body))
    return made[:33] + chunk + made[33:]


def in_jpeg_comment(content: bytes) -> bytes:
    made = a_picture("JPEG")
    return made[:2] + b"\xff\xfe" + struct.pack(">H", len(content) + 2) + content + made[2:]


AGREEMENT = b'#set document(title: "A")\n#json(bytes(sys.inputs.facts)).text'


def stream_of(content: bytes) -> Callable[[pikepdf.Pdf], object]:
    def change(pdf: pikepdf.Pdf) -> None:
        pdf.pages[0].Contents = pdf.make_stream(content)

    return change


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (a_pdf(), PDF),
        (a_pdf(12), PDF),
        (
            by_pypdf(
                lambda made: made.add_annotation(0, Link(rect=(0, 0, 9, 9), url="https://bank.example/JavaScript"))
            ),
            PDF,
        ),
        (in_an_earlier_state(b"<</S/GoTo/D[3 0 R/Fit]>>"), PDF),
        (pdf_with(lambda _: None, linearize=True), PDF),
        (by_hand(page=b""), PDF),
        (a_picture("PNG"), PNG),
        (in_png_text(b"A holiday"), PNG),
        (a_picture("JPEG"), JPEG),
        (a_picture("JPEG", 300, 300, progressive=True), JPEG),
    ],
)
def test_a_harmless_file_passes_inspection(content, kind):
    INSPECTORS[kind.name](content)


def test_a_typeset_agreement_passes_inspection():
    INSPECTORS[PDF.name](typeset(AGREEMENT, {"text": "<script> & /JavaScript " * 900}, made_on=date(2025, 6, 2)))


UNC = r"\\192.0.2.1\share\x.pdf"
FILE, WAY, FORM, MEDIA = "a file inside", "another file", "sends or fetches", "media that play"
BAD: dict[str, tuple[Callable[[], bytes], FileKind, str]] = {
    "a picture of another form": (lambda: a_picture("JPEG"), PNG, "is not a PNG"),
    "no picture at all": (lambda: b"GIF89a" + bytes(40), JPEG, "is not a JPEG"),
    "half a picture": (lambda: a_picture("PNG", 400, 400)[:300], PNG, "damaged"),
    "too many pixels": (huge_png, PNG, "50000 x 50000"),
    "half a PDF": (lambda: a_pdf()[:300], PDF, "no end"),
    "noise in a PDF": (lambda: b"%PDF-1.7\n" + bytes(500) + b"\n%%EOF", PDF, "before the first object"),
    "a wrong table of objects": (lambda: a_pdf().replace(b"0000000", b"0000001"), PDF, "damaged"),
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
    "a file inside, by pypdf": (lambda: by_pypdf(lambda made: made.add_attachment("a.txt", b"MZ")), PDF, FILE),
    "a script, by pypdf": (
        lambda: by_pypdf(lambda made: made.add_open_action(JavaScript("app.alert(1)"))),
        PDF,
        "JavaScript",
    ),
    "a file of a specification": (lambda: by_hand(b"<</F(a)/EF<</F 3 0 R>>>>"), PDF, FILE),
    "a file under an escaped name": (lambda: by_hand(b"<</F(a)/#45#46<</F 3 0 R>>>>"), PDF, FILE),
    "an associated file": (lambda: by_hand(b"<<>>", catalog=b"/AF[4 0 R]"), PDF, FILE),
    "a file at a place of the page": (annotated("FileAttachment", FS="a"), PDF, FILE),
    "a form to send": (acting("SubmitForm", F="https://bank.example/"), PDF, FORM),
    "data to fetch": (acting("ImportData", F="a.fdf"), PDF, FORM),
    "another document": (acting("GoToR", F=UNC, D="a"), PDF, WAY),
    "a document inside another": (acting("GoToE", D="a"), PDF, WAY),
    "a link to a share": (acting("URI", URI=UNC), PDF, WAY),
    "a link to a program": (acting("URI", URI="ms-msdt:/id"), PDF, WAY),
    "a link to a share in other strokes": (acting("URI", URI="/" + UNC[1:]), PDF, WAY),
    "a link to a script in two lines": (acting("URI", URI="java\nscript:alert(1)"), PDF, WAY),
    "a link to a program behind a mark": (acting("URI", URI="\u200bms-msdt:/id"), PDF, WAY),
    "a link to a program with a point": (acting("URI", URI="web.start:a"), PDF, WAY),
    "a share in a thread": (acting("Thread", F=UNC), PDF, WAY),
    "a thread in the folder": (acting("Thread", F="other.pdf"), PDF, WAY),
    "a page of another file": (lambda: by_hand(b"<</Ref<</F(other.pdf)/Page 0>>>>"), PDF, WAY),
    "a file that is fetched": (lambda: by_hand(b"<</FS/URL/F(https://bank.example/a)>>"), PDF, WAY),
    "more pixels than are shown": (lambda: by_hand(picture_of(b"/JBIG2Decode", 60_000)), PDF, "60000 x 60000"),
    "a packing of nobody's": (lambda: by_hand(picture_of(b"[/Fl/Fl]")), PDF, "is not known"),
    "a stream that lies elsewhere": (lambda: by_hand(b"<</Length 0/F(a.txt)>>stream\n\nendstream"), PDF, WAY),
    "rich media": (annotated("RichMedia"), PDF, MEDIA),
    "a film": (annotated("Movie"), PDF, MEDIA),
    "a form of XML": (lambda: by_hand(catalog=b"/AcroForm<</Fields[]/XFA[(a)3 0 R]>>"), PDF, "runs programs"),
    "a script in packed objects": (
        lambda: pdf_with(
            opens_with({"/S": pikepdf.Name.JavaScript}), object_stream_mode=pikepdf.ObjectStreamMode.generate
        ),
        PDF,
        "JavaScript",
    ),
    "a script deep inside": (lambda: by_hand(b"[" * 400 + b"<</S/JavaScript/JS(a)>>" + b"]" * 400), PDF, "JavaScript"),
    "more depth than is read": (
        lambda: by_hand(b"[" * 9_000 + b"<</S/JavaScript/JS(a)>>" + b"]" * 9_000),
        PDF,
        "damaged",
    ),
    "pages in a circle": (lambda: by_hand().replace(b"Kids[3 0 R]", b"Kids[2 0 R]"), PDF, "damaged"),
    "a script in an earlier state": (lambda: in_an_earlier_state(b"<</S/JavaScript/JS(a)>>"), PDF, "JavaScript"),
    "a file in an earlier state": (lambda: in_an_earlier_state(b"<</EF<</F 3 0 R>>>>"), PDF, FILE),
    "a script that nothing refers to": (unreferenced_object_stream, PDF, "JavaScript"),
    "a script that is packed as nobody does": (
        lambda: by_hand(b"<</Type/ObjStm/N 1/First 4/Filter/ASCIIHexDecode/Length 1>>stream\n>\nendstream"),
        PDF,
        "objects packed",
    ),
    "a page of HTML at its start": (lambda: by_hand(header=b"%PDF-1.7\n%<html>\n"), PDF, "before the first object"),
    "a page of HTML in it": (lambda: pdf_with(stream_of(b"<SCRIPT>alert(1)</SCRIPT>"), **RAW), PDF, "another file"),
    "an archive in a stream": (lambda: pdf_with(stream_of(an_archive())), PDF, "an archive"),
    "an archive after it": (lambda: a_pdf() + an_archive(), PDF, "after it"),
    "an archive around it": (lambda: a_pdf().replace(b"%%EOF", an_archive() + b"\n%%EOF"), PDF, "an archive"),
    "another PDF after it": (lambda: a_pdf() + a_pdf(), PDF, "another file"),
    "an archive behind a picture": (lambda: a_picture("PNG") + an_archive(), PNG, "after the end"),
    "an archive behind a photograph": (lambda: a_picture("JPEG") + an_archive(), JPEG, "after the end"),
    "another photograph behind one": (lambda: a_picture("JPEG") * 2, JPEG, "after the end"),
    "a byte behind a picture": (lambda: a_picture("PNG") + b"\n", PNG, "after the end"),
    "an archive in a picture": (lambda: in_png_text(an_archive()), PNG, "an archive"),
    "an archive in a photograph": (lambda: in_jpeg_comment(an_archive()), JPEG, "an archive"),
    "a PDF in a photograph": (lambda: in_jpeg_comment(a_pdf()), JPEG, "a document"),
    "a page of HTML in a photograph": (lambda: in_jpeg_comment(b"<html>"), JPEG, "a page"),
    "a picture with a wrong checksum": (lambda: in_png_text(b"a").replace(b"Comment", b"Komment"), PNG, "is not a PNG"),
    "a photograph without an end": (lambda: a_picture("JPEG")[:-2], JPEG, "damaged"),
    "too many pages": (lambda: a_pdf(301), PDF, "301 pages"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_harmful_file_is_refused_with_the_reason(name):
    make, kind, told = BAD[name]

    with pytest.raises(UnsafeContent, match=told):
        INSPECTORS[kind.name](make())


async def test_a_decompression_bomb_is_refused_in_the_inspection_process():
    photograph = by_hand(picture_of(b"[/FlateDecode/FlateDecode/DCTDecode]", packed=twice_packed()))
    for bomb in (pdf_with(_explode, **RAW), photograph):
        assert len(bomb) < 5_000
        with pytest.raises(UploadRejected):
            await SubprocessFileInspector().inspect(bomb, PDF)


async def test_inspecting_the_largest_file_takes_little_cpu_time(monkeypatch):
    noise = random.Random(7).randbytes(51_000_000)
    largest = pdf_with(lambda pdf: pdf.pages[0].__setattr__("Contents", pikepdf.Stream(pdf, noise, Filter=JPX)), **RAW)
    began = time.process_time()
    INSPECTORS["PDF"](largest)
    assert time.process_time() - began < 1.5

    await SubprocessFileInspector().inspect(largest, PDF)
    monkeypatch.setattr(inspection, "INSPECTION_TIMEOUT_SECONDS", 0.01)
    with pytest.raises(Unavailable, match="waited too long"):
        await SubprocessFileInspector().inspect(largest, PDF)


async def test_a_pdf_designed_for_quadratic_parsing_is_read_in_linear_time():
    lines = b"%PDF-1.7" + b"\n" * 500_000 + b"x\n%%EOF"

    with pytest.raises(UploadRejected, match="before the first object"):
        await SubprocessFileInspector().inspect(lines, PDF)
    await SubprocessFileInspector().inspect(by_hand(b"[/EF" + b" " * 2_000_000 + b"]"), PDF)
