"""Runs in the process that opens a file: `python -I inspection_child.py PDF`, the file on stdin.

Exits with 0 if the file is accepted, with 3 and a sentence if not; any other exit means
that it hit a limit.
"""

import io
import os
import re
import resource
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import NoReturn

import pikepdf

REFUSED = 3
PAGES_MAX = 300
PIXELS_MAX = 50_000_000
PDF_PIXELS_MAX = 200_000_000
"""Per picture in a PDF: a two-color page in a large format has many."""
_MEMORY_BYTES = 768 * 1024 * 1024
_CPU_SECONDS = 8
_NICENESS = 19
_SCRIPT, _FILE, _OTHER_FILE = "JavaScript", "a file inside the file", "a link to another file"
_PROGRAM, _MEDIA, _FORM = "an action that starts a program", "media that play", "a form that sends or fetches data"
_ACTIVE_CONTENT = {
    name: kind
    for kind, names in (
        (_SCRIPT, "/JavaScript /JS"),
        (_PROGRAM, "/Launch"),
        (_FILE, "/EF /RF /AF /EmbeddedFile /EmbeddedFiles /FileAttachment"),
        (_OTHER_FILE, "/GoToR /GoToE"),
        (_FORM, "/SubmitForm /ImportData"),
        ("a form that runs programs", "/XFA"),
        (_MEDIA, "/RichMedia /RichMediaContent /RichMediaExecute /Rendition /Movie /Sound /Screen /3D"),
    )
    for name in names.split()
}
"""Forbidden keys, and values of a type, in any document, with their descriptions."""
_KEYS_ALSO_USED_OTHERWISE = {"/Screen", "/Sound", "/Movie", "/3D", "/Rendition"}
_STREAM_FILTERS = {"/FlateDecode", "/LZWDecode", "/ASCIIHexDecode", "/ASCII85Decode", "/RunLengthDecode"}
_TYPE_KEYS = {"/S", "/Type", "/Subtype"}
_PICTURE_FILTERS = {"/DCTDecode", "/JPXDecode", "/CCITTFaxDecode", "/JBIG2Decode"}
_FILE_KEYS = {"/F", "/UF", "/DOS", "/Unix", "/Mac"}
_LINK_KEYS = {"/URI", "/URL", "/Base"}
_ANOTHER_PLACE = re.compile(r"[\\/]{2}|(?!https?:|mailto:|tel:)[a-z][a-z0-9+.-]*:")
"""Forbidden link targets: a path, also on another computer, or a scheme that starts a program."""
_IGNORED_IN_LINKS = re.compile(r"[\x00-\x20\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+")
_END = b"%%EOF"
# Possessive and bounded, to avoid backtracking.
_HEADER = re.compile(rb"%PDF-\d\.\d[ \t]*+(?:[\r\n]++(?:%[^\r\n<]{0,200}+)?)*+\s*+\d++\s++\d++\s++obj\b")
_STREAM_START = re.compile(rb"stream\r?\n")
_OBJECT_STREAM = re.compile(rb"\s*\d+\s+\d+\s")
_OBJECT_STREAM_MAX = 16 * 1024 * 1024
_PEEKED = 256
_RAW_REFERENCE = re.compile(rb"/(?:EF\s*+<<|(?:EF|AF|XFA)\s*+(?:\[\s*+)?\d++\s++\d++\s++R\b)")


def _any_of(names: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that finds these names, also with their characters written as numbers."""
    spelled = (
        "".join(f"(?:{re.escape(each)}|#(?i:{ord(each):02x}))" for each in name.removeprefix("/")) for name in names
    )
    # Not inside a URL, such as https://bank.example/JavaScript.
    before = r"(?:(?<=[\x00\s<>\[\])]/)|(?<=/S/)|(?<=/Type/)|(?<=/Subtype/))"
    # The slash comes first: a pattern that begins with one character is searched thirty times as fast.
    return re.compile(f"/{before}(?:{'|'.join(spelled)})(?=[\\x00\\s()<>\\[\\]{{}}/%])".encode())


_ALL_NAMES = _any_of(_ACTIVE_CONTENT.keys() - _KEYS_ALSO_USED_OTHERWISE)
# A shorter name may occur in compressed bytes by chance.
_RAW_NAMES = _any_of(name for name in _ACTIVE_CONTENT.keys() - _KEYS_ALSO_USED_OTHERWISE if len(name) > len("/GoTo"))
_PACKED_OBJECTS = _any_of({"/ObjStm"})
_OTHER_PACKING = re.compile(rb"#|(?:ASCII85|ASCIIHex|LZW|RunLength)Decode")
"""Encodings and spellings that no program uses for object streams: their names could not be read here."""
_OTHER_FORMATS = tuple(
    re.compile(each, re.DOTALL)
    for each in (
        rb"PK\x03\x04[\x0a-\x3f]\x00..[\x00\x08\x09\x0c\x0e\x5d-\x62]\x00",
        *(rb"Rar!\x1a\x07", rb"7z\xbc\xaf\x27\x1c", rb"MSCF\x00{4}", rb"\xfd7zXZ\x00"),
        *(rb"<(?i:script|html|!doctype html|\?php)", rb"__(?i:halt_compiler)"),
    )
)
"""Archives and programs, which make a file valid in two formats. Separate patterns, because of their first byte."""
_TAR, _TAR_AT = b"ustar", 257
_JPEG_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_JPEG_ALONE = {0x01, *range(0xD0, 0xD8)}
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_JPEG_FF, _JPEG_END, _JPEG_SCAN = 0xFF, 0xD9, 0xDA
_DAMAGED = "The picture is damaged and cannot be read."
_PROTECTED = "The PDF is protected. Save it without a password."
_NO_RESOURCES = "Resources is missing or invalid; repairing"
"""QPDF's warning about a page that uses no font and no picture."""
_TO_NEW_PDF = "Print it to a new PDF and send that."


class UnsafeContent(Exception):
    """The file is rejected; the sentence gives the reason."""


def check_is_one_format(content: bytes) -> None:
    """Raise UnsafeContent for bytes that another program would open as another format, at any offset."""
    is_archive = zipfile.is_zipfile(io.BytesIO(content)) or content[_TAR_AT:].startswith(_TAR)
    if is_archive or any(each.search(content) for each in _OTHER_FORMATS) or content.find(b"%PDF-", 1) > 0:
        raise UnsafeContent("The file holds another file: an archive, a page or a document.")


def inspect_pdf(content: bytes) -> None:
    """Raise UnsafeContent for a PDF that is broken, locked, too long, or has active content.

    It is parsed strictly: what one program repairs, another reads differently.
    """
    if not content.rstrip(b"\x00\t\n\f\r ").endswith(_END):
        raise UnsafeContent("The PDF has no end marker, or data after it.")
    if _HEADER.match(content) is None:
        raise UnsafeContent("The PDF has data before the first object.")
    check_is_one_format(content)
    try:
        with pikepdf.open(io.BytesIO(content), attempt_recovery=False, suppress_warnings=True) as pdf:
            _check_pdf(pdf)
    except pikepdf.PasswordError:
        raise UnsafeContent(_PROTECTED) from None
    except pikepdf.PdfError:
        raise UnsafeContent("The PDF is damaged and cannot be read.") from None
    _check_unreferenced(content)


def _check_pdf(pdf: pikepdf.Pdf) -> None:
    if pdf.is_encrypted:
        raise UnsafeContent(_PROTECTED)
    for each in (pdf.trailer, *pdf.objects):
        _check_object(each)
        if isinstance(each, pikepdf.Stream):
            _check_picture(each)
            _decode_stream(each)
    if any(not str(each).endswith(_NO_RESOURCES) for each in pdf.get_warnings()):
        raise UnsafeContent(f"The PDF is damaged. {_TO_NEW_PDF}")
    if not 1 <= len(pdf.pages) <= PAGES_MAX:
        raise UnsafeContent(f"The PDF has {len(pdf.pages)} pages. It may have 1 to {PAGES_MAX}.")


def _check_object(root: object) -> None:
    """Raise UnsafeContent if an object, or anything directly in it, is active content."""
    pending: list[object] = [root]
    while pending:
        each = pending.pop()
        children: list[object] = []
        if isinstance(each, pikepdf.Dictionary | pikepdf.Stream):
            if isinstance(each, pikepdf.Stream) and "/F" in each:
                _refuse(_OTHER_FILE)
            entries = {str(key): value for key, value in each.items()}
            for key, value in entries.items():
                _check_entry(key, value)
            if any(isinstance(entries.get(key), pikepdf.String) for key in _FILE_KEYS):
                _refuse(_OTHER_FILE)
            children += entries.values()
        elif isinstance(each, pikepdf.Array):
            children += list(each)
        pending += [child for child in children if not getattr(child, "is_indirect", False)]


def _check_entry(key: str, value: object) -> None:
    name = str(value) if isinstance(value, pikepdf.Name) and key in _TYPE_KEYS else ""
    known_key = "" if key in _KEYS_ALSO_USED_OTHERWISE else key
    if active := _ACTIVE_CONTENT.get(known_key) or _ACTIVE_CONTENT.get(name):
        _refuse(active)
    if key in _LINK_KEYS and isinstance(value, pikepdf.String):
        path = _IGNORED_IN_LINKS.sub("", str(value)).lower()
        if _ANOTHER_PLACE.match(path):
            _refuse(_OTHER_FILE)


def _refuse(active: str) -> NoReturn:
    raise UnsafeContent(f"The PDF holds {active}. {_TO_NEW_PDF}")


def _check_unreferenced(content: bytes) -> None:
    """Raise UnsafeContent for content that only an earlier revision of the PDF refers to, or nothing at all.

    Programs that repair a file, or show its history, find it again.
    """
    _check_names(content, _RAW_NAMES)
    if _RAW_REFERENCE.search(content):
        _refuse(_FILE)
    for found in _PACKED_OBJECTS.finditer(content):
        begins, ends = content.rfind(b"obj", 0, found.start()), content.find(b"stream", found.end())
        if _OTHER_PACKING.search(content, max(begins, 0), ends):
            _refuse("objects packed in a format that is not known")
    for start in _STREAM_START.finditer(content):
        decompress = zlib.decompressobj().decompress
        packed = memoryview(content)[start.end() : start.end() + _OBJECT_STREAM_MAX]
        try:
            if _OBJECT_STREAM.match(decompress(packed[:_PEEKED], _PEEKED)):
                _check_names(zlib.decompressobj().decompress(packed, _OBJECT_STREAM_MAX), _ALL_NAMES)
        except zlib.error:
            continue


def _check_names(text: bytes, names: re.Pattern[bytes]) -> None:
    if found := names.search(text):
        name = re.sub(rb"#(..)", lambda escape: bytes([int(escape[1], 16)]), found[0])
        _refuse(_ACTIVE_CONTENT[name.decode()])


def _decode_stream(stream: pikepdf.Stream) -> None:
    """Unpack a stream once, so that a decompression bomb fails here. Pictures keep their own format."""
    filter_entry: object = stream.get("/Filter", [])
    filters = list(filter_entry) if isinstance(filter_entry, pikepdf.Array) else [filter_entry] if filter_entry else []
    names = [str(each) for each in filters]
    if not set(names) <= _STREAM_FILTERS | _PICTURE_FILTERS:
        _refuse("data in a format that is not known")
    packing = list(takewhile(_STREAM_FILTERS.__contains__, names))
    if packing == names:
        check_is_one_format(stream.read_bytes())
    elif packing:
        with pikepdf.new() as alone:
            form = pikepdf.Array([pikepdf.Name(each) for each in packing])
            check_is_one_format(pikepdf.Stream(alone, stream.read_raw_bytes(), Filter=form).read_bytes())


def _check_picture(stream: pikepdf.Stream) -> None:
    """Raise UnsafeContent for a picture that needs too much memory to show, however well it is compressed."""
    width, height = stream.get("/Width", 0), stream.get("/Height", 0)
    if isinstance(width, int) and isinstance(height, int) and width * height > PDF_PIXELS_MAX:
        raise UnsafeContent(f"The PDF holds a picture of {width} x {height} pixels, which is too many.")


def inspect_image(content: bytes, image_format: str) -> None:
    """Raise UnsafeContent for a picture of another format, damaged, with too many pixels, or with trailing bytes."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - only in the child

    Image.MAX_IMAGE_PIXELS = None  # counted here, before anything is unpacked
    try:
        with Image.open(io.BytesIO(content), formats=(image_format,)) as image:
            width, height = image.size
            if width * height > PIXELS_MAX:
                raise UnsafeContent(f"The picture has {width} x {height} pixels, which is too many.")
            image.load()
        ends_at = _png_end(content) if image_format == "PNG" else _jpeg_end(content)
    except UnidentifiedImageError:
        raise UnsafeContent(f"The file is not a {image_format}.") from None
    except (OSError, SyntaxError, ValueError, IndexError, struct.error):
        raise UnsafeContent(_DAMAGED) from None
    if ends_at != len(content):
        raise UnsafeContent("The picture has data after the end.")
    check_is_one_format(content)


def _png_end(content: bytes) -> int:
    """Return the end of the last chunk. Raises UnsafeContent for a chunk with a wrong checksum."""
    at = len(_PNG_SIGNATURE)
    while True:
        length: int
        length, kind = struct.unpack_from(">I4s", content, at)
        body_end = at + 8 + length
        (checksum,) = struct.unpack_from(">I", content, body_end)
        if zlib.crc32(content[at + 4 : body_end]) != checksum:
            raise UnsafeContent(_DAMAGED)
        at = body_end + 4
        if kind == b"IEND":
            return at


def _jpeg_end(content: bytes) -> int:
    """Return the end of the end marker. Raises IndexError for a picture without one."""
    at = 2
    while True:
        if content[at] != _JPEG_FF:
            raise UnsafeContent(_DAMAGED)
        while content[at] == _JPEG_FF:
            at += 1
        marker, at = content[at], at + 1
        if marker == _JPEG_END:
            return at
        if marker in _JPEG_ALONE:
            continue
        (length,) = struct.unpack_from(">H", content, at)
        at += length
        if marker == _JPEG_SCAN:
            found = _JPEG_MARKER.search(content, at)
            if found is None:
                raise UnsafeContent(_DAMAGED)
            at = found.start()


INSPECTORS: dict[str, Callable[[bytes], None]] = {
    "PDF": inspect_pdf,
    "PNG": lambda content: inspect_image(content, "PNG"),
    "JPEG": lambda content: inspect_image(content, "JPEG"),
}


def main() -> int:
    """Take away what the process does not need, and look. Processes of the bank itself go first."""
    os.nice(_NICENESS)
    for limit, maximum in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (maximum, maximum))
    try:
        INSPECTORS[sys.argv[1]](sys.stdin.buffer.read())
    except UnsafeContent as error:
        sys.stdout.write(str(error))
        sys.stdout.flush()
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
