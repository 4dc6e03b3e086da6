"""The review of originations: which are approved by rule, and which an operator decides.

Source of the rates: Nacha Operating Rules, section 2.17 (0.5 % unauthorised, 3 % administrative,
15 % of all debits come back within sixty days).
"""

from billfold.payments.ach.types import OriginationHistory

_RATES = (("unauthorised", 5), ("administrative", 30), ("returned", 150))
_DEBITS_MIN = 20
"""Return rates are checked from this many debits on."""
ADMINISTRATIVE = frozenset({"R02", "R03", "R04"})
UNAUTHORISED = frozenset({"R05", "R07", "R10", "R11", "R29", "R51"})
HISTORY_DAYS = 60


def review_reason(amount: int, history: OriginationHistory, *, above_cents: int) -> str | None:
    """Return why an operator has to decide about an entry; None if it is approved by rule.

    An operator decides about entries above the customer's daily limit, and about all entries of a
    customer whose return rates exceed those that Nacha allows.
    """
    if history.today_cents + amount > above_cents:
        return f"The day's entries come to more than {above_cents} cents."
    if history.debits >= _DEBITS_MIN:
        for name, per_mille in _RATES:
            if getattr(history, name) * 1000 > history.debits * per_mille:
                return f"The rate of {name} debits is above {per_mille / 10:g} %."
    return None
