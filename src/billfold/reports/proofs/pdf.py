"""An associated file of a PDF (PDF/A-3, PDF/UA), added by an incremental update: the document stays as it was made."""

import hashlib
import io
import re
from datetime import UTC, datetime
from typing import Final

import pikepdf

from billfold.platform.errors import InvariantError

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
    for number, at, body in (
        (file + 1, b"spec_at", _FILE_SPECIFICATION % facts),
        (root, b"root_at", _CATALOG % facts),
    ):
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
