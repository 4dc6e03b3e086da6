"""Who requests or decides."""

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from billfold.identity.users.rules import Confirmation, Role
from billfold.ledger.types import Origin
from billfold.platform.crypto import Vault
from billfold.platform.database.connection import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The member who requests or decides, and the origin of the call.

    A person has a `user_id`; a service user has none. `client_id` is the application used, `scopes` those of its
    token: on a page there is neither. `now` is the bank's time, `business_date` its day, `wall` wall time.
    """

    pool: Pool
    vault: Vault
    customer_id: UUID
    member_id: UUID
    user_id: UUID | None
    client_id: str
    role: Role
    scopes: frozenset[str] | None
    name: str
    origin: Origin
    now: datetime
    business_date: date
    wall: datetime
    confirmation: Confirmation | None = None
