"""Notes in requests, in responses and as filters of lists."""

from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from billfold.http.parameters import CentsQuery, Query, Since, Until
from billfold.platform.errors import InvalidInput

ENTRIES_MAX = 50
"""Maximum number of keys of one object's metadata."""
ExternalId = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=100,
        pattern=r"^[!-~]+\Z",
        description="an id of your own, unique per customer and kind, of printable ASCII characters without spaces",
    ),
]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9_.:-]+\Z")]
Metadata = Annotated[
    dict[Key, Annotated[str, msgspec.Meta(max_length=500)]],
    msgspec.Meta(max_length=ENTRIES_MAX, description="Your own texts by your own keys."),
]


class NewNote(msgspec.Struct, kw_only=True):
    """The note of a new object."""

    external_id: ExternalId | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class ChangedNote(msgspec.Struct, kw_only=True):
    """Another id, null for none; metadata that replace all of the former."""

    external_id: ExternalId | UnsetType | None = UNSET
    metadata: Metadata | UnsetType = UNSET


class ChangeNote(ChangedNote, forbid_unknown_fields=True, kw_only=True):
    """Another note of an object, and nothing else."""


class NoteQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter by notes. An external id looks up one object: no other filter is taken with it."""

    external_id: Annotated[str | None, Query(description="The one with your own id; no other filter is taken.")] = None
    metadata: Annotated[dict[str, str] | None, Query(description="Those with these texts.")] = None

    def require_alone(self, *filters: object) -> str | None:
        """Return the external id to look up. Raises InvalidInput if it comes with another filter."""
        if self.external_id is not None and (self.metadata or any(each is not None for each in filters)):
            raise InvalidInput.at("query", "external_id", msg="looks up one object: send no other filter")
        return self.external_id


class SpanFilters(msgspec.Struct, frozen=True, kw_only=True):
    """Filter by time and amount; None does not filter."""

    time_created_from: Since = None
    time_created_to: Until = None
    amount_from: CentsQuery = None
    amount_to: CentsQuery = None

    @property
    def values(self) -> tuple[object, ...]:
        """The filters, in their order."""
        return (self.time_created_from, self.time_created_to, self.amount_from, self.amount_to)


class PaymentFilters(NoteQuery, frozen=True, kw_only=True):
    """Filter of payments; None does not filter."""

    counterparty_id: Annotated[UUID | None, Query()] = None
    time_created_from: Since = None
    time_created_to: Until = None
    amount_from: CentsQuery = None
    amount_to: CentsQuery = None

    @property
    def values(self) -> tuple[object, ...]:
        """The filters but those by notes, in the order of `PAYMENT_FILTERS`."""
        span = (self.time_created_from, self.time_created_to)
        return (*span, self.amount_from, self.amount_to, self.counterparty_id)
