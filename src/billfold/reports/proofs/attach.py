"""Proofs in files: a PDF holds it as an associated file, XML as a processing instruction, any other has it beside it.

The bank signs every byte of a file but the proof's own. Nothing of the file has to be understood to check it.
"""

import hashlib
import io
import re
from datetime import UTC, datetime
from typing import BinaryIO, Final, NamedTuple

import pikepdf

from billfold.platform.errors import InvariantError
from billfold.reports.proofs.signatures import DOCUMENT, DocumentKey, Manifest, SignedBytes, SignedManifest, sign

MARKER: Final = b"billfold-proof "
SIDE_FILE_SUFFIX: Final = ".proof"
MARK_BYTES: Final = 6
_MARKS_MAX = 4096
_CHUNK_BYTES = 1 << 20
_PROOF = re.compile(MARKER + rb"([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)")
_XML_BEFORE, _XML_AFTER = b"\n<?" + MARKER, b"?>\n"


class ReadFile(NamedTuple):
    """A file as it was read: its proof, None if there is none, all bytes but those of the proof, and where that is."""

    proof: str | None
    content: bytes
    is_inside: bool


def attach(content: bytes, manifest: Manifest, key: DocumentKey) -> bytes:
    """Return a PDF or an XML document with its proof in it: the same arguments give the same bytes.

    `key` comes from `get_document_key` for `manifest.at`. Other formats get a `side_file`.
    """
    if content.startswith(b"%PDF-"):
        return _attach_to_pdf(content, manifest, key)
    around = (content + _XML_BEFORE, _XML_AFTER)
    return around[0] + _prove(io.BytesIO(b"".join(around)), manifest, key) + around[1]


def append_to(file: BinaryIO, manifest: Manifest, key: DocumentKey) -> None:
    """Append the proof to an XML file that is open for both, however long it is."""
    length = file.seek(0, io.SEEK_END)
    file.write(_XML_BEFORE + _XML_AFTER)
    proof = _prove(file, manifest, key)
    file.seek(length + len(_XML_BEFORE))
    file.write(proof + _XML_AFTER)


def side_file(content: BinaryIO, manifest: Manifest, key: DocumentKey) -> bytes:
    """Return the file that lies beside one that has no place for a proof; its name is that of the file and ".proof"."""
    return MARKER + _prove(content, manifest, key) + b"\n"


def read(content: bytes, beside: bytes | None = None) -> ReadFile:
    """Return the proof of a file, from the file itself or else from the file beside it."""
    found = None
    for found in _PROOF.finditer(content):  # noqa: B007 - the last one counts: what else is there is signed by it
        pass
    if found is not None:
        return ReadFile(found[1].decode(), content[: found.start(1)] + content[found.end(1) :], is_inside=True)
    aside = _PROOF.search(beside or b"")
    return ReadFile(aside[1].decode() if aside else None, content, is_inside=False)


def line_marks(content: BinaryIO, lines_per_mark: int) -> str:
    """Return the first bytes of the SHA-256 of every so many lines, in hex."""
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
    # The proof is as long as one of other 32 bytes, which the update that is signed already names.
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
    """Return what comes before and after the proof in a PDF that holds it: a marker, then `length` characters."""
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
