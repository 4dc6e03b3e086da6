"""The Partner API put together: its operations, and what they share of a bank."""

from collections.abc import Sequence

from typing_extensions import override

from billfold import __version__
from billfold.apis.previews import MoneyPreview, render_money_preview
from billfold.approvals.routes import request_approval
from billfold.documents.store import find_type
from billfold.events.broadcaster import EventBroadcaster, create_event_broadcaster
from billfold.events.kinds import PARTNER_KINDS
from billfold.events.webhook_openapi import webhooks_of
from billfold.http.api import Api
from billfold.http.openapi import PAGES, Described, Document, Reference, describe, examples_of
from billfold.http.operations import Operation, Proof, operations_of_parts
from billfold.identity.partners.caller import SignedRequestAuthenticator
from billfold.identity.users.passwords import PasswordGate
from billfold.ledger.bank import Bank
from billfold.payments.on_us.routes import PeerLookup
from billfold.platform.settings.settings import Settings
from billfold.request_log.recorder import RequestRecorder

_TITLE = "Partner API"
_DESCRIPTION = (
    "Open accounts for your customers whose money lives in US Treasury bills, and move it. "
    "Amounts are integers in cents.\n\n"
    "Every request carries a token, an idempotency key and a signature: `Authorization: Bearer "
    "<token>`, `x-service-idempotency: <uuid>`, `x-service-signature: <base64>`. The signature is "
    "HMAC-SHA256, keyed with your shared secret, over the key, the path and the body as sent, with "
    "nothing between them. Operations of the sandbox need only the token.\n\n"
    "To get a token, send user name and password to `POST /api/v1/login/`, or an assertion signed by your key to "
    "`POST /token/`. It is valid for one hour.\n\n"
    "A request may be sent again under its key: it does not run twice, and the first answer comes "
    "back for 24 hours. Errors are problem documents whose `type` is a page that explains them."
)
PROOFS = frozenset({Proof.NONE, Proof.TOKEN, Proof.TOKEN_AND_KEY, Proof.SIGNATURE})
_OAUTH = frozenset({Proof.OAUTH})


class PartnerApi(Api):
    """The Partner API of one process."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        super().__init__([*operations, *PAGES], PROOFS)
        self._documented = tuple(operations)

    def open_bank(self, bank: Bank, broadcaster: EventBroadcaster | None = None, **more: object) -> None:
        """Serve a bank; `more` are services of operations that this package does not have."""
        self._broadcaster, self._peers = (broadcaster or create_event_broadcaster(bank), PeerLookup(bank.pool))
        self.open(
            bank,
            SignedRequestAuthenticator(bank),
            gate=PasswordGate(),
            broadcaster=self._broadcaster,
            peers=self._peers,
            request_log=RequestRecorder(bank.pool, bank.vault),
            find_document_type=find_type,
            render_preview=render_money_preview,
            request_approval=request_approval,
            reference=Reference(lambda: partner_document(bank.settings, self._documented)),
            **more,
        )

    @override
    async def close(self) -> None:
        await self._broadcaster.close()
        await self._peers.close()
        await super().close()

    def document(self, *, include_deprecated: bool = False) -> Document:
        """Return the OpenAPI document."""
        return partner_document(self.bank.settings, self._documented, include_deprecated=include_deprecated)


def partner_operations(sandbox: Sequence[Operation] = ()) -> list[Operation]:
    """Return the operations that the parts of the bank offer to a partner, and the sandbox's."""
    return [*(each for each in operations_of_parts() if _is_offered(each)), *sandbox]


def _is_offered(operation: Operation) -> bool:
    # What is open but names a scope as well is open on the Customer API only.
    access = operation.access_by(PROOFS)
    return access is not None and (access.proof is not Proof.NONE or operation.access_by(_OAUTH) is None)


def create_partner_app(
    bank: Bank, *, operations: Sequence[Operation], broadcaster: EventBroadcaster | None = None
) -> PartnerApi:
    """Return the ASGI application of one worker. Opening the bank starts its engine."""
    api = PartnerApi(operations)
    api.open_bank(bank, broadcaster)
    return api


def partner_document(
    settings: Settings, operations: Sequence[Operation], *, include_deprecated: bool = False
) -> Document:
    """Return the OpenAPI document of these operations; no bank needs to be open for it."""
    server = {
        "url": f"https://{{partner}}.{settings.domain}:{{port}}",
        "variables": {
            "partner": {"default": "acme", "description": "The name you were given."},
            "port": {"default": str(settings.port)},
        },
    }
    what = Described(
        operations=operations,
        proofs=PROOFS,
        title=_TITLE,
        version=__version__,
        description=_DESCRIPTION,
        servers=[server],
        examples=examples_of(__name__),
        webhooks=webhooks_of(PARTNER_KINDS, customer=False),
        preview=MoneyPreview,
    )
    return describe(what, include_deprecated=include_deprecated)
