"""Documents that people upload: of which type, for whom, and what the review made of them.

Owns their rows and what their types, names and contents must be. The files lie in the file store;
a review is decided by a flow. Never opens a file.
"""

from billfold.domain.documents.reads import (
    find_unnamed,
    get_document,
    list_documents,
    list_in_review,
    look_up,
)
from billfold.domain.documents.rules import (
    PROOF_OF_ACCOUNT,
    TYPES,
    check_file,
    file_name_in,
    largest_bytes,
)
from billfold.domain.documents.types import DocumentRow
from billfold.domain.documents.writes import add, decide, put_file

__all__ = [
    "PROOF_OF_ACCOUNT",
    "TYPES",
    "DocumentRow",
    "add",
    "check_file",
    "decide",
    "file_name_in",
    "find_unnamed",
    "get_document",
    "largest_bytes",
    "list_documents",
    "list_in_review",
    "look_up",
    "put_file",
]
