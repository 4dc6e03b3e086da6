"""Calls both APIs as any program would: httpx with the right headers, typed answers.

    with httpx.Client(base_url=..., auth=PartnerAuth(...)) as http:
        PartnerApi(http).pockets()

Nothing of the bank but its shapes is used, so what works here works from anywhere.
"""

from billfold.client.answers import ApiError
from billfold.client.authorization import Authorization, Begun, Registered, Tokens
from billfold.client.customer import CustomerApi
from billfold.client.deliveries import NotGenuine, unwrap
from billfold.client.dpop import DpopAuth
from billfold.client.local import local_client
from billfold.client.partner import PartnerApi
from billfold.client.proofs import ProofKey
from billfold.client.signed import PartnerAuth
from billfold.client.streams import EventStream

__all__ = [
    "ApiError",
    "Authorization",
    "Begun",
    "CustomerApi",
    "DpopAuth",
    "EventStream",
    "NotGenuine",
    "PartnerApi",
    "PartnerAuth",
    "ProofKey",
    "Registered",
    "Tokens",
    "local_client",
    "unwrap",
]
