"""The review of what customers originate: what is let through, and what a person looks at first.

Source of the rates: Nacha Operating Rules, section 2.17 (0.5 % unauthorised, 3 % administrative,
15 % of all debits come back within sixty days).
"""

from __future__ import annotations

from typing import NamedTuple

_RATES = (("unauthorised", 5), ("administrative", 30), ("returned", 150))
_DEBITS_MIN = 20
"""Below this many debits a rate says nothing."""
ADMINISTRATIVE = frozenset({"R02", "R03", "R04"})
UNAUTHORISED = frozenset({"R05", "R07", "R10", "R11", "R29", "R51"})
HISTORY_DAYS = 60


class OriginationHistory(NamedTuple):
    """What a customer has originated: cents of today, and debits of sixty days that came back."""

    today_cents: int = 0
    debits: int = 0
    returned: int = 0
    administrative: int = 0
    unauthorised: int = 0


def review_reason(amount: int, history: OriginationHistory, *, above_cents: int) -> str | None:
    """Return why a person is to look at an entry before it goes, None when it may go.

    Looked at is what takes the customer's day above the limit, and every entry of a customer
    whose debits come back more often than the network allows.
    """
    if history.today_cents + amount > above_cents:
        return f"The day's entries come to more than {above_cents} cents."
    if history.debits >= _DEBITS_MIN:
        for name, per_mille in _RATES:
            if getattr(history, name) * 1000 > history.debits * per_mille:
                return f"The rate of {name} debits is above {per_mille / 10:g} %."
    return None
