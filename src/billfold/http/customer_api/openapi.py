"""What the OpenAPI document of the Customer API says that no signature tells."""

from __future__ import annotations

from typing import Any

from billfold.access.oauth.rules.scopes import SCOPES
from billfold.http.openapi.document import COMPONENTS
from billfold.platform.settings.settings import Settings

TITLE = "Customer API"
DESCRIPTION = (
    "Work with your company's Pockets, whose money lives in US Treasury bills. Amounts are "
    "integers in cents.\n\n"
    "Every request carries an access token of the authorization server: `Authorization: DPoP "
    "<token>` and a new `DPoP` proof when the token is bound to a key, `Authorization: Bearer "
    "<token>` when it is not. A token is for one customer and lasts 900 seconds. What it may do is "
    "said by its scopes, and by the role of its user in the team: both must allow it.\n\n"
    "Requests that change something may carry an `Idempotency-Key`: the same request under the "
    "same key gets the same answer for 24 hours and does not run twice. Errors are problem "
    "documents whose `type` is a page that explains them."
)
CSV_ANSWER: dict[str, Any] = {
    "responses": {"200": {"description": "The file.", "content": {"text/csv": {"schema": {"type": "string"}}}}}
}


def components(settings: Settings) -> dict[str, Any]:
    """Return the shared parts of the document."""
    server = f"{settings.auth_origin}/api/oauth2"
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
            }
        },
        "schemas": COMPONENTS["schemas"],
    }
