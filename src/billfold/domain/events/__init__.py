"""Events: what can be told of to whoever subscribes.

Owns the kinds of events and who is told of which. Never decides whether something happened: the
flow in which it happens writes the event.
"""

from billfold.domain.events import feed
from billfold.domain.events.envelope import encode_envelope
from billfold.domain.events.kinds import CUSTOMER_KINDS, PARTNER_KINDS

__all__ = ["CUSTOMER_KINDS", "PARTNER_KINDS", "encode_envelope", "feed"]
