"""Whether a customer may give instructions."""

from billfold.ledger.directory.types import CustomerStatus
from billfold.platform.errors import Refused

_ACTIVE = frozenset({CustomerStatus.PENDING, CustomerStatus.OPEN})


def require_active(status: str) -> None:
    """Raise Refused customer-not-open for a frozen customer, who only receives, and for a closed one."""
    if status not in _ACTIVE:
        raise Refused("customer-not-open", f"The customer is {status}.")
