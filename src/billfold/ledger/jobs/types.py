"""A scheduled job."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class ScheduledJob(NamedTuple):
    """What kind of thing is to be done with which object of which customer, and when."""

    kind: str
    object_id: UUID
    customer_id: UUID | None
    at: datetime

    @property
    def name(self) -> str:
        """What it is called where it is put aside."""
        return f"{self.kind} {self.object_id}"
