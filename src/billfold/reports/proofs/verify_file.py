"""Whether a file is as the bank signed it, and which figure of it is not. Needs the public keys of the bank alone."""

import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from difflib import SequenceMatcher, get_close_matches
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pypdf
import pypdf.errors

from billfold.reports.proofs import attach, signatures

_BLOCKS_MAX: Final = 5
"""How many changed places of a text are described at most."""
_PDF_ENDS: Final = 64


class Verdict(IntEnum):
    """What is known of a file; its value is the exit status of `billfold verify FILE`."""

    SIGNED = 0
    ALTERED = 1
    UNSIGNED = 3
    FOREIGN = 4
    REVOKED = 5


_VERDICTS: Final = {signatures.UnknownKey: Verdict.FOREIGN, signatures.RevokedKey: Verdict.REVOKED}


class FileVerdict(NamedTuple):
    """What is known of a file, what the bank has signed about it, and what is wrong with it, in sentences."""

    verdict: Verdict
    manifest: signatures.Manifest | None
    key_id: str
    findings: Sequence[str]
    revoked_at: datetime | None = None


def verify_file(path: Path, keys: Sequence[signatures.PublicKey]) -> FileVerdict:
    """Look at a file, and at the one beside it that has its proof. Raises OSError."""
    content = path.read_bytes()
    beside = path.with_name(path.name + attach.SIDE_FILE_SUFFIX)
    file = attach.read(content, beside.read_bytes() if beside.exists() else None)
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
    if attach.MARKER.rstrip() in content:
        return "The file ends in the middle of its proof, or the proof was overwritten."
    if content.startswith(b"%PDF-") and b"%%EOF" not in content[-_PDF_ENDS:]:
        return "The file is cut off: it has no end and no proof."
    return "There is no proof in the file, nor in a file beside it."


def _changed_figures(content: bytes, manifest: signatures.Manifest) -> Iterator[str]:
    text = content.decode("utf-8", "replace")
    if content.startswith(b"%PDF-"):
        try:
            text = "\n".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages)
        except (pypdf.errors.PyPdfError, ValueError, KeyError, RecursionError):
            yield "The PDF cannot be read: it is cut off or damaged."
            return
    yield from changed_figures(text, manifest.figures)


def _changed_lines(content: bytes, signed: signatures.SignedBytes) -> Iterator[str]:
    """Name the lines of a text that differ, as far as no line was added or left out."""
    if not signed.lines_per_mark:
        return
    width = 2 * attach.MARK_BYTES
    expected = [signed.marks[at : at + width] for at in range(0, len(signed.marks), width)]
    marks = attach.line_marks(io.BytesIO(content), signed.lines_per_mark)
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
"""In how long a text its original is searched: what is hashed grows with the square of it."""


def changed_figures(text: str, figures: Sequence[signatures.Figure]) -> Iterator[str]:
    """Name each signed figure that the text does not show where it should: they are in its order."""
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
    """Return the text that differs from this one in a digit, or in two that were exchanged, and has the mark."""
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
        if right - left <= 2 and block[left] != block[right]:  # noqa: PLR2004 - a point may be between them
            changed = bytearray(block)
            changed[left], changed[right] = block[right], block[left]
            yield bytes(changed)
