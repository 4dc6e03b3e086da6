"""Proofs in files: a PDF holds it as an associated file, XML as a processing instruction, any other has it beside it.

The bank signs every byte of a file but the proof's own. Nothing of the file has to be understood to check it.
"""

import hashlib
import io
import re
from typing import BinaryIO, Final, NamedTuple

from billfold.reports.proofs.pdf import proof_update
from billfold.reports.proofs.signatures import DOCUMENT, sign
from billfold.reports.proofs.types import DocumentKey, Manifest, SignedBytes, SignedManifest

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
