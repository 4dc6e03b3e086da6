"""The Customer API put together: its operations, and what they share of a bank."""

from typing_extensions import override

from billfold import __version__
from billfold.apis.previews import MoneyPreview, render_money_preview
from billfold.approvals.routes import request_approval
from billfold.documents.store import find_type
from billfold.events.broadcaster import EventBroadcaster, create_event_broadcaster
from billfold.events.kinds import CUSTOMER_KINDS
from billfold.events.webhook_openapi import webhooks_of
from billfold.http.api import Api
from billfold.http.openapi import COMPONENTS, PAGES, Described, Document, Reference, describe, examples_of
from billfold.http.operations import Operation, Proof, operations_of_parts
from billfold.ledger.bank import Bank
from billfold.oauth.caller import AccessTokenAuthenticator
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.platform.settings.settings import Settings
from billfold.request_log.recorder import RequestRecorder

_TITLE = "Customer API"
_DESCRIPTION = (
    "Work with your company's Pockets, whose money lives in US Treasury bills. Amounts are "
    "integers in cents.\n\n"
    "Every request carries an access token of the authorization server: `Authorization: DPoP "
    "<token>` and a new `DPoP` proof when the token is bound to a key, `Authorization: Bearer "
    "<token>` when it is not. A token is for one customer and lasts 900 seconds. What it may do is "
    "limited by its scopes and by the role of its user in the team: both must allow it.\n\n"
    "To get a token for a user, send them to `{server}/authorize` (authorization code with PKCE; clients of the "
    "profile `fapi2` push the request to `{server}/par` first) and exchange the code at `{server}/token`. A service "
    "user sends `grant_type=client_credentials` to `{server}/token`. Clients prove themselves there by a "
    "`private_key_jwt` assertion.\n\n"
    "Requests that change something may carry an `Idempotency-Key`: the same request under the "
    "same key gets the same answer for 24 hours and does not run twice. Errors are problem "
    "documents whose `type` is a page that explains them."
)
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
            AccessTokenAuthenticator(bank, bank.settings.customer_origin),
            broadcaster=self._broadcaster,
            request_log=RequestRecorder(bank.pool, bank.vault),
            find_document_type=find_type,
            render_preview=render_money_preview,
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
    """Return the ASGI application of one worker. Opening the bank starts its engine."""
    api = CustomerApi()
    api.open_bank(bank, broadcaster)
    return api


def customer_document(settings: Settings) -> Document:
    """Return the OpenAPI document of the Customer API; no bank needs to be open for it."""
    what = Described(
        operations=customer_operations(),
        proofs=PROOFS,
        title=_TITLE,
        version=__version__,
        description=_DESCRIPTION.replace("{server}", _token_server(settings)),
        servers=[{"url": settings.customer_origin}],
        examples=examples_of(__name__),
        components=_components(settings),
        webhooks=webhooks_of(CUSTOMER_KINDS, customer=True),
        preview=MoneyPreview,
    )
    return describe(what)


def _token_server(settings: Settings) -> str:
    return f"{settings.auth_origin}/api/oauth2"


def _components(settings: Settings) -> Document:
    """Return the shared parts of the document."""
    server = _token_server(settings)
    flow = {"tokenUrl": f"{server}/token", "scopes": dict(SCOPES)}
    code = {**flow, "authorizationUrl": f"{server}/authorize", "refreshUrl": f"{server}/token"}
    return {
        "securitySchemes": {
            "CodeBearer": {
                "type": "oauth2",
                "description": "Access tokens, bound to a key by DPoP (RFC 9449) or not.",
                "flows": {"authorizationCode": code, "clientCredentials": flow},
            }
        },
        "parameters": {
            "IdempotencyKey": {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "1 to 255 characters, new for every action. The same request under "
                "the same key gets the same answer for 24 hours; nothing runs twice.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            },
        },
        "schemas": COMPONENTS["schemas"],
    }
