"""The port of a third party that takes orders to a dealer in place of a session."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

AdapterFields = Sequence[tuple[int, str]]
"""The fields of a message of FIX 4.4 with their tags, in its order; without length, checksum and names."""


@runtime_checkable
class DealerAdapter(Protocol):
    """Carries orders to one dealer and reports back. Only one process calls it at a time."""

    async def send(self, kind: str, fields: AdapterFields) -> None:
        """Take an order (D), a request to cancel it (F), for its status (H) or for quotes (R), or a reject (j).

        It is never called again with the same message. Raises any error if the message may not have been taken.
        """

    async def receive(self) -> tuple[str, AdapterFields]:
        """Wait for a report and return it: 8, 9, S, AG, 3 or j. It is kept once the next one is asked for.

        One that was not kept is reported again. The call may be cancelled.
        """


class DealerAdapters(dict[str, DealerAdapter]):
    """The adapters of the bank, by dealer."""
