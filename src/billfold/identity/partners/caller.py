"""A user of a partner as the caller of an operation."""

from functools import partial
from typing import Any
from uuid import UUID

from typing_extensions import override

from billfold.http.api import Identity, fingerprint_of
from billfold.http.caller import Call
from billfold.http.limits.idempotency import AdmissionRequest
from billfold.http.operations import Operation
from billfold.http.raw_request import RawRequest
from billfold.identity.partners.rules import PartnerPerson, refusal_of
from billfold.ledger.types import Origin
from billfold.platform.ids import command_id


class Caller(Call, frozen=True, kw_only=True):
    """One request of a partner: who, and on whose behalf."""

    partner_slug: str
    user_id: UUID
    own_customer_id: UUID

    @property
    @override
    def origin(self) -> Origin:
        """The partner, and its user."""
        return Origin(
            kind="PARTNER", name=self.partner_slug, client_id=self.name, ip_address=self.address, user_agent=self.agent
        )

    @property
    @override
    def key_owner(self) -> str:
        """The partner, whichever of its users calls."""
        return f"partner:{self.partner_id}"


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
