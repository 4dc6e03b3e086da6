"""People of a partner at the Partner API: what they may do there is said by their role in the partner's team."""

from functools import partial
from typing import Any

from billfold.http.admission import AdmissionRequest
from billfold.http.api import Identity, fingerprint_of
from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.identity.partners.caller import Caller
from billfold.identity.partners.rules import refusal_of
from billfold.identity.partners.types import PartnerPerson
from billfold.platform.ids import command_id

KEY_HEADER = b"idempotency-key"
_PER_MINUTE = 600


async def identity_of_person(person: PartnerPerson, request: RawRequest, operation: Operation) -> Identity:
    """Return who sends a request that the bank's pages make for a person of a partner.

    Requests, and the keys of forms, are counted for each person.
    """
    refusal = refusal_of(person.role, changes=operation.changes, moves_money=operation.moves_money)
    sent = None if refusal or not operation.changes else request.header(KEY_HEADER)
    owner = command_id(f"partner-member:{person.partner.partner_id}", str(person.user_id))
    key = None if sent is None else command_id(str(owner), sent)
    return Identity(
        admission=AdmissionRequest(
            caller=owner,
            key_owner=owner,
            per_minute=_PER_MINUTE,
            money_per_minute=0,
            key=key,
            fingerprint=await fingerprint_of(request),
            claims=key is not None,
            moves_money=False,
        ),
        call_of=partial(_caller, person),
        refusal=refusal,
    )


def _caller(person: PartnerPerson, fields: dict[str, Any]) -> Caller:
    return Caller(
        name=f"partner-member:{person.member_id}",
        partner_id=person.partner.partner_id,
        partner_slug=person.partner.slug,
        user_id=person.user_id,
        own_customer_id=person.partner.own_customer_id,
        **fields,
    )
