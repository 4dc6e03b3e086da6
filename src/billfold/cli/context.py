"""What every command builds on: the settings, the database, the bank; and the error that ends it.

The class is the wiring's: no command picks an adapter itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from billfold.wiring.cli_context import EmbeddedDatabase, ExternalDatabase, Wiring

StepReporter = Callable[[str], None]
CliContext: TypeAlias = "Wiring"
Database: TypeAlias = "EmbeddedDatabase | ExternalDatabase"


class CliError(Exception):
    """A command cannot do its work: what is wrong, and what to do next."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step
