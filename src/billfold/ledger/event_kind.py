"""The declaration of a kind of event, which a rule raises with a payload of its type."""

from typing import Generic, TypeVar

import msgspec

Payload = TypeVar("Payload", bound=msgspec.Struct)


class EventKind(msgspec.Struct, Generic[Payload], frozen=True):
    """A kind of event. `partner` and `customer` say which API can see it."""

    name: str
    meaning: str
    """One sentence: when it is raised."""
    example: Payload
    partner: bool = False
    customer: bool = False
    version: int = 1
    """Raised by one whenever fields are added to the payload."""

    @property
    def payload(self) -> type[Payload]:
        """The shape of the payload."""
        return type(self.example)
