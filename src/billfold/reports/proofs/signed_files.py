"""Signs files, and checks that a file is as the bank signed it, with public keys only.

A PDF holds its proof as an associated file, XML as a processing instruction, any other file has it in a file of its
own. The bank signs every byte of a file but the proof's own. Nothing of the file has to be understood to check it.
"""

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from difflib import SequenceMatcher, get_close_matches
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from billfold.platform.errors import InvariantError
from billfold.reports.proofs import signatures
from billfold.reports.proofs.signatures import DOCUMENT, DocumentKey, Manifest, SignedBytes, SignedManifest, sign

MARKER: Final = b"billfold-proof "
SIDE_FILE_SUFFIX: Final = ".proof"
MARK_BYTES: Final = 6
_MARKS_MAX = 4096
_CHUNK_BYTES = 1 << 20
_PROOF = re.compile(MARKER + rb"([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)")
_XML_BEFORE, _XML_AFTER = b"\n<?" + MARKER, b"?>\n"


class ReadFile(NamedTuple):
    """A file as read: its proof, None if there is none, all bytes except those of the proof, and where the proof is."""

    proof: str | None
    content: bytes
    is_inside: bool


def attach(content: bytes, manifest: Manifest, key: DocumentKey) -> bytes:
    """Return a PDF or an XML document with its proof embedded: the same arguments give the same bytes.

    `key` comes from `get_document_key` for `manifest.at`. Other formats get a `side_file`.
    """
    if content.startswith(b"%PDF-"):
        return _attach_to_pdf(content, manifest, key)
    around = (content + _XML_BEFORE, _XML_AFTER)
    return around[0] + _prove(io.BytesIO(b"".join(around)), manifest, key) + around[1]


def append_to(file: BinaryIO, manifest: Manifest, key: DocumentKey) -> None:
    """Append the proof to an XML file that is open for reading and writing, of any length."""
    length = file.seek(0, io.SEEK_END)
    file.write(_XML_BEFORE + _XML_AFTER)
    proof = _prove(file, manifest, key)
    file.seek(length + len(_XML_BEFORE))
    file.write(proof + _XML_AFTER)


def side_file(content: BinaryIO, manifest: Manifest, key: DocumentKey) -> bytes:
    """Return the proof file of a file that has no place for a proof; its name is that of the file and ".proof"."""
    return MARKER + _prove(content, manifest, key) + b"\n"


def read(content: bytes, side_file: bytes | None = None) -> ReadFile:
    """Return the proof of a file, from the file itself or else from its proof file."""
    found = None
    for found in _PROOF.finditer(content):  # noqa: B007 - the last one counts: it signs any others
        pass
    if found is not None:
        return ReadFile(found[1].decode(), content[: found.start(1)] + content[found.end(1) :], is_inside=True)
    aside = _PROOF.search(side_file or b"")
    return ReadFile(aside[1].decode() if aside else None, content, is_inside=False)


def line_marks(content: BinaryIO, lines_per_mark: int) -> str:
    """Return the first bytes of the SHA-256 of every `lines_per_mark` lines, in hex."""
    marks, block = [], hashlib.sha256()
    content.seek(0)
    pending = 0
    for line in content:
        block.update(line)
        pending += 1
        if pending == lines_per_mark:
            marks.append(block.digest()[:MARK_BYTES])
            block, pending = hashlib.sha256(), 0
    if pending:
        marks.append(block.digest()[:MARK_BYTES])
    return b"".join(marks).hex()


def _attach_to_pdf(content: bytes, manifest: Manifest, key: DocumentKey) -> bytes:
    # The proof has the length of one with other 32 bytes, and the signed update already contains that length.
    signed = SignedManifest(manifest, SignedBytes(sha256="0" * 64))
    length = len(sign(signed, key, DOCUMENT))
    before, after = proof_update(content, MARKER, length, made_at=manifest.at)
    sha256 = hashlib.sha256(before + after).hexdigest()
    proof = sign(SignedManifest(manifest, SignedBytes(sha256=sha256)), key, DOCUMENT).encode()
    return before + proof + after


def _prove(content: BinaryIO, manifest: Manifest, key: DocumentKey) -> bytes:
    content.seek(0)
    whole, lines = hashlib.sha256(), 0
    while chunk := content.read(_CHUNK_BYTES):
        whole.update(chunk)
        lines += chunk.count(b"\n")
    per_mark = lines // _MARKS_MAX + 1
    signed = SignedBytes(sha256=whole.hexdigest(), lines_per_mark=per_mark, marks=line_marks(content, per_mark))
    return sign(SignedManifest(manifest, signed), key, DOCUMENT).encode()


_NAME: Final = b"billfold-proof.txt"
_START_OF_REFERENCES = re.compile(rb"startxref\s+(\d+)\s+%%EOF\s*\Z")
_FILE_SPECIFICATION: Final = (
    b"<< /Type /Filespec /F (%(name)s) /UF (%(name)s) /AFRelationship /Supplement /Desc (What the bank has signed) "
    b"/EF << /F %(file)d 0 R /UF %(file)d 0 R >> >>"
)
_CATALOG: Final = (
    b"%(catalog)s /AF [%(spec)d 0 R] /Names << /EmbeddedFiles << /Names [(%(name)s) %(spec)d 0 R] >> >> >>"
)
_EMBEDDED: Final = (
    b"<< /Type /EmbeddedFile /Subtype /text#2Fplain /Params << /ModDate (D:%(made_at)s) /Size %(size)d >> "
    b"/Length %(size)d >>\nstream\n"
)
_REFERENCES: Final = (
    b"xref\n0 1\n0000000000 65535 f\r\n%(root)d 1\n%(root_at)010d 00000 n\r\n"
    b"%(file)d 2\n%(file_at)010d 00000 n\r\n%(spec_at)010d 00000 n\r\n"
    b"trailer\n<< /Size %(objects)d /Root %(root)d 0 R %(info)s/ID [<%(id)s> <%(new_id)s>] /Prev %(previous)d >>\n"
    b"startxref\n%(references_at)d\n%%%%EOF\n"
)
_AFTER_OBJECT: Final = b"\nendobj\n"


def proof_update(content: bytes, marker: bytes, length: int, *, made_at: datetime) -> tuple[bytes, bytes]:
    """Return the bytes before and after the proof in a PDF that holds it: a marker, then `length` characters."""
    import pikepdf  # noqa: PLC0415 - only where a PDF is signed

    previous = _START_OF_REFERENCES.search(content)
    if previous is None or not content[int(previous[1]) :].startswith(b"xref"):
        raise InvariantError("A PDF has no table of references that one more could follow.")
    with pikepdf.open(io.BytesIO(content)) as pdf:
        if pdf.Root.keys() & {"/AF", "/Names"}:
            raise InvariantError("A PDF has associated files already.")
        file, root = int(pdf.trailer.Size), pdf.Root.objgen[0]
        catalog = pdf.Root.unparse(resolved=True).removesuffix(b">>")
        info = b"/Info %d 0 R " % pdf.trailer.Info.objgen[0] if "/Info" in pdf.trailer else b""
        identity = bytes(pdf.trailer.ID[0])
    facts = {b"name": _NAME, b"file": file, b"spec": file + 1, b"root": root, b"catalog": catalog}
    before = content if content.endswith(b"\n") else content + b"\n"
    offsets = {}
    for number, at, body in ((file + 1, b"spec_at", _FILE_SPECIFICATION % facts), (root, b"root_at", _CATALOG % facts)):
        offsets[at] = len(before)
        before += b"%d 0 obj\n%s%s" % (number, body, _AFTER_OBJECT)
    offsets[b"file_at"] = len(before)
    size, moment = len(marker) + length, f"{made_at.astimezone(UTC):%Y%m%d%H%M%SZ}".encode()
    before += b"%d 0 obj\n%s%s" % (file, _EMBEDDED % {b"made_at": moment, b"size": size}, marker)
    end = b"\nendstream" + _AFTER_OBJECT
    trailer = _REFERENCES % {
        **facts,
        **offsets,
        b"objects": file + 2,
        b"info": info,
        b"id": identity.hex().encode(),
        b"new_id": hashlib.sha256(before).hexdigest()[:32].encode(),
        b"previous": int(previous[1]),
        b"references_at": len(before) + length + len(end),
    }
    return before, end + trailer


_BLOCKS_MAX: Final = 5
"""Maximum number of changed places of a text to describe."""
_PDF_ENDS: Final = 64


class Verdict(IntEnum):
    """The result for a file; its value is the exit status of `billfold verify FILE`."""

    SIGNED = 0
    ALTERED = 1
    UNSIGNED = 3
    FOREIGN = 4
    REVOKED = 5


_VERDICTS: Final = {signatures.UnknownKey: Verdict.FOREIGN, signatures.RevokedKey: Verdict.REVOKED}


class FileVerdict(NamedTuple):
    """The result for a file, the manifest that the bank signed, and the problems, in sentences."""

    verdict: Verdict
    manifest: signatures.Manifest | None
    key_id: str
    findings: Sequence[str]
    revoked_at: datetime | None = None


def verify_file(path: Path, keys: Sequence[signatures.PublicKey]) -> FileVerdict:
    """Read a file and its proof file. Raises OSError."""
    content = path.read_bytes()
    side_path = path.with_name(path.name + SIDE_FILE_SUFFIX)
    file = read(content, side_path.read_bytes() if side_path.exists() else None)
    if file.proof is None:
        return FileVerdict(Verdict.UNSIGNED, None, "", [_why_unsigned(content)])
    try:
        signed, key_id = signatures.verify(file.proof, keys, signatures.DOCUMENT, signatures.SignedManifest)
        signatures.refuse_revoked(keys, key_id, signed.manifest.at)
    except signatures.Unproven as unproven:
        return FileVerdict(_VERDICTS.get(type(unproven), Verdict.ALTERED), None, "", [str(unproven)])
    if hashlib.sha256(file.content).hexdigest() == signed.content.sha256:
        revoked_at = next(each.revoked_at for each in keys if each.key_id == key_id)
        return FileVerdict(Verdict.SIGNED, signed.manifest, key_id, [], revoked_at)
    found = [*_changed_lines(file.content, signed.content)]
    if file.is_inside:
        found += _changed_figures(file.content, signed.manifest)
    if not found:
        found = ["Every figure that the bank signed reads as it was signed, but the file is another one."]
    return FileVerdict(Verdict.ALTERED, signed.manifest, key_id, [*dict.fromkeys(found)])


def _why_unsigned(content: bytes) -> str:
    if MARKER.rstrip() in content:
        return "The file ends in the middle of its proof, or the proof was overwritten."
    if content.startswith(b"%PDF-") and b"%%EOF" not in content[-_PDF_ENDS:]:
        return "The file is cut off: it has no end and no proof."
    return "There is no proof in the file or in a companion file."


def _changed_figures(content: bytes, manifest: signatures.Manifest) -> Iterator[str]:
    text = content.decode("utf-8", "replace")
    if content.startswith(b"%PDF-"):
        import pypdf  # noqa: PLC0415 - loads for a fifth of a second, and only a PDF that was altered needs it
        import pypdf.errors  # noqa: PLC0415 - as above

        try:
            text = "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages)
        except (pypdf.errors.PyPdfError, ValueError, KeyError, RecursionError):
            yield "The PDF cannot be read: it is cut off or damaged."
            return
    yield from changed_figures(text, manifest.figures)


def _changed_lines(content: bytes, signed: signatures.SignedBytes) -> Iterator[str]:
    """Name the changed lines of a text, if no line was added or removed."""
    if not signed.lines_per_mark:
        return
    width = 2 * MARK_BYTES
    expected = [signed.marks[at : at + width] for at in range(0, len(signed.marks), width)]
    marks = line_marks(io.BytesIO(content), signed.lines_per_mark)
    found = [marks[at : at + width] for at in range(0, len(marks), width)]
    if len(found) != len(expected):
        yield "Lines were added or left out."
    changed = [at for at, (left, right) in enumerate(zip(found, expected, strict=False)) if left != right]
    lines = content.splitlines(keepends=True) if changed else []
    for at in changed[:_BLOCKS_MAX]:
        first = at * signed.lines_per_mark
        block = lines[first : first + signed.lines_per_mark]
        yield _describe(block, first + 1, original_of(b"".join(block), expected[at]))
    if len(changed) > _BLOCKS_MAX:
        yield f"{len(changed) - _BLOCKS_MAX} more places differ."


def _describe(block: Sequence[bytes], first: int, original: bytes | None) -> str:
    if original is None:
        last = first + len(block) - 1
        place = f"Line {first} is" if last <= first else f"Lines {first} to {last} are"
        return f"{place} not as the bank signed."
    for number, (reads, was) in enumerate(zip(block, original.splitlines(keepends=True), strict=False), first):
        if reads != was:
            return f"Line {number} reads {_line(reads)}; the bank signed {_line(was)}."
    return f"Line {first} is not as the bank signed."


def _line(line: bytes) -> str:
    return repr(line.strip().decode("utf-8", "replace"))


_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")
_DIGITS: Final = b"0123456789"
_BLOCK_BYTES_MAX: Final = 20_000
"""Maximum length of a text whose original is searched: the work grows with its square."""


def changed_figures(text: str, figures: Sequence[signatures.Figure]) -> Iterator[str]:
    """Name each signed figure that the text does not show in its place: they are in display order."""
    signed = [(each.label, number) for each in figures for number in _NUMBER.findall(each.value)]
    shown = _NUMBER.findall(text)
    matcher = SequenceMatcher(None, [number for _, number in signed], shown, autojunk=False)
    for change, first, last, from_, to in matcher.get_opcodes():
        if change not in {"replace", "delete"}:
            continue
        candidates = shown[from_:to]
        for label, number in signed[first:last]:
            nearest = get_close_matches(number, candidates, n=1, cutoff=0.5)
            if nearest:
                del candidates[: candidates.index(nearest[0]) + 1]
                yield f"{label} reads {nearest[0]}; the bank signed {number}."
            else:
                yield f"{label} does not read {number}, as the bank signed."


def original_of(block: bytes, mark: str) -> bytes | None:
    """Return the text that differs in one digit, or in two swapped ones, and matches the mark."""
    if len(block) > _BLOCK_BYTES_MAX:
        return None
    return next((each for each in _variants(block) if hashlib.sha256(each).hexdigest().startswith(mark)), None)


def _variants(block: bytes) -> Iterator[bytes]:
    places = [at for at, byte in enumerate(block) if byte in _DIGITS]
    for at in places:
        for digit in _DIGITS:
            if digit != block[at]:
                yield block[:at] + bytes([digit]) + block[at + 1 :]
    for left, right in pairwise(places):
        if right - left <= 2 and block[left] != block[right]:  # noqa: PLR2004 - a decimal point may be between them
            changed = bytearray(block)
            changed[left], changed[right] = block[right], block[left]
            yield bytes(changed)
