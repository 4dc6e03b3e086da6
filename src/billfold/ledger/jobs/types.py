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
