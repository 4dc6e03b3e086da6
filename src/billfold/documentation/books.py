"""The books of the site: what is written, what is made from the code, and a reference for each API."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from billfold.documentation.generated.event_pages import event_index, event_pages
from billfold.documentation.generated.problem_pages import problem_index, problem_pages
from billfold.documentation.generated.yield_page import yield_page
from billfold.documentation.navigation import written_groups
from billfold.documentation.reference.pages import api_book
from billfold.documentation.types import Book, Group
from billfold.events.kinds import KINDS
from billfold.platform.problems import PROBLEMS

Documents = Mapping[str, Callable[[], Mapping[str, Any]]]
"""The OpenAPI document of each API by the name it has in addresses."""


def make_books(documents: Documents) -> Sequence[Book]:
    """Return every book."""
    made = {
        "Concepts": [yield_page()],
        "Reference": [problem_index(PROBLEMS.values()), event_index(KINDS.values())],
    }
    groups = [Group(each.title, [*made.get(each.title, ()), *each.pages]) for each in written_groups()]
    return [
        Book("Documentation", groups),
        *(api_book(name, msgspec.to_builtins(document())) for name, document in documents.items()),
        Book("", [Group("Errors", problem_pages(PROBLEMS.values()))], navigation=groups),
        Book("", [Group("Events", event_pages(KINDS.values()))], navigation=groups),
    ]
