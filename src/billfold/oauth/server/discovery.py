"""Discovery: the server's metadata and its public keys."""

from typing import Any

from billfold.http.operations import OPEN, get
from billfold.oauth import signing_keys
from billfold.oauth.rules import authorization_params, public_keys
from billfold.oauth.rules.authorization_params import SCOPES
from billfold.oauth.rules.client_metadata import GRANT_TYPES
from billfold.oauth.server.auth_server import TOKEN_PATH, AuthServer
from billfold.platform.clock import wall_now

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
