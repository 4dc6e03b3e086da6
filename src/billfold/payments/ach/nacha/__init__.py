"""NACHA files: ACH entries as lines of 94 characters, read and written.

Owns the layout of every record and the sums that prove a file whole. Never decides whether an
entry is wanted: it takes all of a file or none of it. A file passes through line by line; only
`read_file` holds one whole, for whoever looks at small ones.
"""

from collections.abc import Iterator

from billfold.payments.ach.nacha.reader import normalize, read_file, read_header, read_lines
from billfold.payments.ach.nacha.writer import NachaWriter, to_ach_text, write_file
from billfold.payments.ach.ports import AchFile, EntryLine

__all__ = ["NachaFormat", "read_file", "read_lines", "to_ach_text", "write_file"]


class NachaFormat:
    """The format as the bank asks for it."""

    def head(self, raw: bytes) -> AchFile:
        """Return what a file says of itself, without its batches. Raises FileRefused."""
        return read_header(raw)

    def lines(self, raw: bytes) -> Iterator[EntryLine]:
        """Yield every entry of a file. Raises FileRefused at the end when anything was wrong."""
        return read_lines(raw)

    def normalize(self, raw: bytes) -> bytes:
        """Return the same file with a line feed after every line, whatever its lines ended in."""
        return normalize(raw)

    def writer(self, head: AchFile) -> NachaWriter:
        """Begin a file; `head` has no batches."""
        return NachaWriter(head)

    def text(self, text: str, width: int) -> str:
        """Return a name or description as the network carries it, cut to `width`."""
        return to_ach_text(text, width)
