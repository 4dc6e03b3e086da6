"""Events: what can be told of to whoever subscribes.

Owns the kinds of events, what each says and who may see it. Never decides whether something
happened: the flow in which it happens writes the event. Reads are in `log`.
"""

from billfold.domain.events.envelope import API_VERSION, Envelope, encode_envelope
from billfold.domain.events.kinds import CUSTOMER_KINDS, KINDS, PARTNER_KINDS, EventKind
from billfold.domain.events.schemas import example_payload, payload_schema

__all__ = [
    "API_VERSION",
    "CUSTOMER_KINDS",
    "KINDS",
    "PARTNER_KINDS",
    "Envelope",
    "EventKind",
    "encode_envelope",
    "example_payload",
    "payload_schema",
]
