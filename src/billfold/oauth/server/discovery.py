"""Discovery: the metadata of the server, its public keys, and its OpenAPI document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from billfold.http.operations import OPEN, get
from billfold.oauth import signing_keys
from billfold.oauth.endpoint import STRING, form_openapi
from billfold.oauth.rules import authorization_params, public_keys
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.oauth.rules.client_metadata import GRANT_TYPES
from billfold.oauth.server.auth_server import ASSERTION_TYPE, TOKEN_PATH, AuthServer
from billfold.platform.clock import wall_now

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


_CLAIMS = (
    "sub",
    "iss",
    "aud",
    "exp",
    "iat",
    "auth_time",
    "nonce",
    "sid",
    "at_hash",
    "name",
    "given_name",
    "family_name",
    "email",
    "email_verified",
    "phone_number",
    "phone_number_verified",
    "member_id",
    "customer_id",
    "partner_id",
)


@get("/.well-known/openid-configuration", OPEN, tag="discovery", any_query=True)
async def show_configuration(server: AuthServer) -> dict[str, Any]:
    """Describe the authorization server (OpenID Connect Discovery, RFC 8414)."""
    return metadata(server.issuer)


@get("/.well-known/jwks.json", OPEN, tag="discovery", any_query=True)
async def show_keys(server: AuthServer) -> dict[str, Any]:
    """Return the public keys of ID tokens. A key is listed before it signs, and for a day after."""
    return dict(signing_keys.jwks_document(await server.signing_keys(wall_now())))


def metadata(issuer: str) -> dict[str, Any]:
    """Return the metadata of the authorization server at an address."""
    oauth2 = f"{issuer}/api/oauth2"
    proven: dict[str, Any] = {}
    for endpoint in ("token", "introspection", "revocation"):
        proven[f"{endpoint}_endpoint_auth_methods_supported"] = ["private_key_jwt"]
        algorithms = list(public_keys.ALGORITHMS)
        proven[f"{endpoint}_endpoint_auth_signing_alg_values_supported"] = algorithms
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{oauth2}/authorize",
        "pushed_authorization_request_endpoint": f"{oauth2}/par",
        "token_endpoint": issuer + TOKEN_PATH,
        "userinfo_endpoint": f"{issuer}/api/v1/user",
        "introspection_endpoint": f"{oauth2}/introspect",
        "revocation_endpoint": f"{oauth2}/revoke",
        "end_session_endpoint": f"{oauth2}/logout",
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "scopes_supported": list(SCOPES),
        "claims_supported": list(_CLAIMS),
        "response_types_supported": ["code"],
        "response_modes_supported": list(authorization_params.RESPONSE_MODES),
        "prompt_values_supported": sorted(authorization_params.PROMPTS),
        "grant_types_supported": list(GRANT_TYPES),
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": list(signing_keys.ALGORITHMS),
        "code_challenge_methods_supported": ["S256"],
        "dpop_signing_alg_values_supported": list(public_keys.ALGORITHMS),
        "authorization_response_iss_parameter_supported": True,
        "require_pushed_authorization_requests": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "claims_parameter_supported": False,
        **proven,
    }
