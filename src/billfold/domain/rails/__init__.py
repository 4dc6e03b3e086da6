"""What all rails share: the files that go out and come in, and what became of them.

Owns the table `rail_file`. Never reads what a file says: that is the rail's own work.
"""

from billfold.domain.rails.files import (
    AlreadyArrived,
    RailFile,
    find_file,
    finish,
    keep_arrived,
    keep_made,
    list_files,
    list_unfinished,
    read_content,
)
from billfold.domain.rails.troubles import (
    Stuck,
    Trouble,
    list_in_trouble,
    list_to_take,
    note_trouble,
    trouble_of,
    try_again,
)

__all__ = [
    "AlreadyArrived",
    "RailFile",
    "Stuck",
    "Trouble",
    "find_file",
    "finish",
    "keep_arrived",
    "keep_made",
    "list_files",
    "list_in_trouble",
    "list_to_take",
    "list_unfinished",
    "note_trouble",
    "read_content",
    "trouble_of",
    "try_again",
]
