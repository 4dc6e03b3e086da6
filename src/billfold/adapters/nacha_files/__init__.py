"""NACHA files: ACH entries as lines of 94 characters, read and written.

Owns the layout of every record and the sums that prove a file whole. Never decides whether an
entry is wanted: it takes all of a file or none of it.
"""

from billfold.adapters.nacha_files.mistakes import Mistake, NachaRefused
from billfold.adapters.nacha_files.reading import read_file
from billfold.adapters.nacha_files.writing import as_text, write_file

__all__ = ["Mistake", "NachaRefused", "as_text", "read_file", "write_file"]
