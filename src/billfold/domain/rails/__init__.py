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

__all__ = [
    "AlreadyArrived",
    "RailFile",
    "find_file",
    "finish",
    "keep_arrived",
    "keep_made",
    "list_files",
    "list_unfinished",
    "read_content",
]
