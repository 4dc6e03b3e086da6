"""The Customer API put together: its operations, and what they share of a bank."""

from __future__ import annotations

from typing_extensions import override

from billfold import __version__
from billfold.approvals.routes.authorization_requests import request_approval
from billfold.events.kinds import CUSTOMER_KINDS
from billfold.events.stream.broadcaster import EventBroadcaster, create_event_broadcaster
from billfold.events.webhook_openapi import webhooks_of
from billfold.http.api import Api
from billfold.http.customer_api.authenticator import AccessTokenAuthenticator
from billfold.http.customer_api.openapi import DESCRIPTION, TITLE, components
from billfold.http.openapi.document import Described, Document, describe, examples_of
from billfold.http.openapi.pages import PAGES, Reference
from billfold.http.operations import Operation, Proof, operations_of_parts
from billfold.ledger.bank import Bank
from billfold.platform.settings.settings import Settings

PROOFS = frozenset({Proof.NONE, Proof.OAUTH})


class CustomerApi(Api):
    """The Customer API of one process."""

    def __init__(self) -> None:
        super().__init__([*customer_operations(), *PAGES], PROOFS)

    def open_bank(self, bank: Bank, broadcaster: EventBroadcaster | None = None) -> None:
        """Serve a bank."""
        self._broadcaster = broadcaster or create_event_broadcaster(bank)
        self.open(
            bank,
            AccessTokenAuthenticator(bank),
            broadcaster=self._broadcaster,
            request_approval=request_approval,
            reference=Reference(lambda: customer_document(bank.settings)),
        )

    @override
    async def close(self) -> None:
        await self._broadcaster.close()
        await super().close()


def customer_operations() -> list[Operation]:
    """Return the operations that the parts of the bank offer to an access token."""
    return [each for each in operations_of_parts() if each.access_by(frozenset({Proof.OAUTH}))]


def create_customer_app(bank: Bank, *, broadcaster: EventBroadcaster | None = None) -> CustomerApi:
    """Return the ASGI application of one worker. Whoever opens the bank starts its engine."""
    api = CustomerApi()
    api.open_bank(bank, broadcaster)
    return api


def customer_document(settings: Settings) -> Document:
    """Return the OpenAPI document of the Customer API; no bank needs to be open for it."""
    what = Described(
        operations=customer_operations(),
        proofs=PROOFS,
        title=TITLE,
        version=__version__,
        description=DESCRIPTION,
        servers=[{"url": settings.customer_origin}],
        examples=examples_of(str(__package__)),
        components=components(settings),
        webhooks=webhooks_of(CUSTOMER_KINDS, customer=True),
    )
    return describe(what)
