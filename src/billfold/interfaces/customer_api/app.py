"""The Customer API put together: its operations, and what they share of a bank."""

from __future__ import annotations

from typing_extensions import override

from billfold import __version__
from billfold.domain.events import CUSTOMER_KINDS
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.authenticator import AccessTokenAuthenticator
from billfold.interfaces.customer_api.told import DESCRIPTION, TITLE, components
from billfold.interfaces.http.api import Api
from billfold.interfaces.http.newsroom import Newsroom, newsroom_of
from billfold.interfaces.http.openapi import Described, Document, describe, examples_of
from billfold.interfaces.http.operations import Operation, Proof, operations_in
from billfold.interfaces.http.pages import PAGES, Reference
from billfold.interfaces.http.webhook_calls import webhooks_of
from billfold.kit.settings import Settings

PROOFS = frozenset({Proof.NONE, Proof.OAUTH})


class CustomerApi(Api):
    """The Customer API of one process."""

    def __init__(self) -> None:
        super().__init__([*customer_operations(), *PAGES], PROOFS)

    def open_bank(self, bank: Bank, newsroom: Newsroom | None = None) -> None:
        """Serve a bank."""
        self._newsroom = newsroom or newsroom_of(bank)
        self.open(
            bank,
            AccessTokenAuthenticator(bank),
            newsroom=self._newsroom,
            reference=Reference(lambda: customer_document(bank.settings)),
        )

    @override
    async def close(self) -> None:
        await self._newsroom.close()
        await super().close()


def customer_operations() -> list[Operation]:
    """Return the operations of every module here, and those the Partner API shares."""
    shared = operations_in("billfold.interfaces.partner_api")
    return [
        *operations_in(str(__package__)),
        *(each for each in shared if each.access_by(frozenset({Proof.OAUTH})) is not None),
    ]


def create_customer_app(bank: Bank, *, newsroom: Newsroom | None = None) -> CustomerApi:
    """Return the ASGI application of one worker. Whoever opens the bank starts its engine."""
    api = CustomerApi()
    api.open_bank(bank, newsroom)
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
