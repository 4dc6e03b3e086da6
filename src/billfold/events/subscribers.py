"""Which events a caller can see."""

from billfold.events.types import Subscriber
from billfold.identity.partners.caller import Caller
from billfold.oauth.caller import CustomerCaller


def subscriber_of(caller: Caller | CustomerCaller) -> Subscriber:
    """Return whose events the caller can see: its customer's, or all of the partner's."""
    return Subscriber(caller.partner_id, None if isinstance(caller, Caller) else caller.customer_id)
