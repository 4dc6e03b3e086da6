"""OpenAPI of endpoints whose parameters come in forms."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from billfold.oauth.endpoint import STRING, form_openapi
from billfold.oauth.server.auth_server import ASSERTION_TYPE

_CLIENT: Mapping[str, Any] = {
    "client_id": {**STRING, "description": "If sent, the issuer of the assertion."},
    "client_assertion_type": {"const": ASSERTION_TYPE},
    "client_assertion": {
        **STRING,
        "description": "A JWT by a registered key (ES256, PS256, EdDSA): `iss` and `sub` the "
        "client_id, `aud` the issuer, `exp` at most 60 minutes ahead (5 for `fapi2` clients), "
        "`jti` new until then.",
    },
}
_AUTHORIZE_PARAMS: Mapping[str, Any] = {
    "response_type": {"const": "code"},
    "redirect_uri": {**STRING, "description": "One of the registered addresses, exactly."},
    "scope": {**STRING, "description": "Scopes separated by spaces; if omitted, all of the client's."},
    "state": STRING,
    "nonce": STRING,
    "code_challenge": {**STRING, "minLength": 43, "maxLength": 43},
    "code_challenge_method": {"const": "S256"},
    "response_mode": {"enum": ["query", "form_post"], "default": "query"},
    "dpop_jkt": {**STRING, "description": "The thumbprint of the key the code is bound to."},
    "prompt": STRING,
    "max_age": {"type": "integer", "minimum": 0},
    "login_hint": STRING,
}
_PROOF: Mapping[str, Any] = {
    "name": "DPoP",
    "in": "header",
    "required": False,
    "description": "A proof of possession (RFC 9449). With it the tokens are bound to its key.",
    "schema": STRING,
}
_TOKEN: Mapping[str, Any] = {"token": STRING, "token_type_hint": STRING}


def _client_authenticated(
    fields: Mapping[str, Any], required: Iterable[str], *errors: str, parameters: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    described = form_openapi({**fields, **_CLIENT}, [*required, "client_assertion_type", "client_assertion"], *errors)
    return {**described, "parameters": parameters} if parameters else described


TOKEN_OPENAPI = _client_authenticated(
    {
        "grant_type": {"enum": ["authorization_code", "refresh_token", "client_credentials"]},
        "code": STRING,
        "redirect_uri": STRING,
        "code_verifier": STRING,
        "refresh_token": STRING,
        "scope": STRING,
    },
    ["grant_type"],
    "invalid_request",
    "invalid_grant",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_dpop_proof",
    "use_dpop_nonce",
    parameters=[_PROOF],
)
PUSH_OPENAPI = _client_authenticated(
    _AUTHORIZE_PARAMS,
    ["response_type", "redirect_uri", "code_challenge", "code_challenge_method"],
    "invalid_request",
    "invalid_scope",
    "unsupported_response_type",
    "unauthorized_client",
    "invalid_dpop_proof",
    "use_dpop_nonce",
    parameters=[_PROOF],
)
INTROSPECT_OPENAPI = _client_authenticated(_TOKEN, ["token"], "invalid_request")
REVOKE_OPENAPI = _client_authenticated(_TOKEN, ["token"], "invalid_request")
REVOKE_OPENAPI["responses"]["200"] = {
    "description": "The token is no longer valid.",
    "headers": {},
    "content": {"application/json": {"schema": STRING}},
}
AUTHORIZE_OPENAPI: dict[str, Any] = {
    "parameters": [
        {"name": name, "in": "query", "required": name == "client_id", "schema": schema}
        for name, schema in {"client_id": STRING, "request_uri": STRING, **_AUTHORIZE_PARAMS}.items()
    ],
    "responses": {
        "303": {"description": "To the consent page, or back to the client with an error."},
        "400": {"description": "A page: the client or its address is unknown."},
    },
}
LOGOUT_OPENAPI: dict[str, Any] = {
    "parameters": [
        {"name": name, "in": "query", "required": False, "schema": STRING}
        for name in ("id_token_hint", "client_id", "post_logout_redirect_uri", "state")
    ],
    "responses": {"303": {"description": "To the registered address, or to the page to sign out."}},
}
