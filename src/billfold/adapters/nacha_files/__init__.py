"""NACHA files: ACH entries as lines of 94 characters, read and written.

Owns the layout of every record and the sums that prove a file whole. Never decides whether an
entry is wanted: it takes all of a file or none of it.
"""

from billfold.adapters.nacha_files.reading import read_file
from billfold.adapters.nacha_files.writing import as_text, write_file
from billfold.ports.ach_network import AchFile

__all__ = ["NachaFiles", "as_text", "read_file", "write_file"]


class NachaFiles:
    """The format as the bank asks for it."""

    def read(self, raw: bytes) -> AchFile:
        """Return what a file says. Raises FileRefused when anything is wrong with it."""
        return read_file(raw)

    def write(self, file: AchFile) -> bytes:
        """Return the file. Raises ValueError for what cannot be written as it is."""
        return write_file(file)

    def text(self, text: str, width: int) -> str:
        """Return a name or description as the network carries it, cut to `width`."""
        return as_text(text, width)
