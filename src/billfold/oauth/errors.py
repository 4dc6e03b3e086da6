"""How the authorization server says no: an error code of OAuth, one sentence."""

from __future__ import annotations


class OAuthError(Exception):
    """An error of RFC 6749 or its companions. The endpoint decides its HTTP status.

    `error` is for clients, `description` for users: printable ASCII without quotes.
    """

    def __init__(self, error: str, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.error = error
        self.description = description


def invalid_dpop_proof(description: str) -> OAuthError:
    """Return the refusal of a DPoP proof."""
    return OAuthError("invalid_dpop_proof", description)


def invalid_client(description: str) -> OAuthError:
    """Return the refusal of a client that did not prove who it is."""
    return OAuthError("invalid_client", description)


def invalid_grant(description: str) -> OAuthError:
    """Return the refusal of a code or a refresh token."""
    return OAuthError("invalid_grant", description)


def invalid_request(description: str) -> OAuthError:
    """Return the refusal of a request that is not as it should be."""
    return OAuthError("invalid_request", description)
