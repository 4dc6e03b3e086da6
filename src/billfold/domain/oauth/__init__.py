"""The authorization server's nouns: clients, requests, grants, codes, tokens, proofs, keys.

Owns what a token of the Customer API stands for, on the wall clock, and the rules by which one
comes about. Never decides what its holder may do with money, and never who a person is.
"""

from billfold.domain.oauth import dpop
from billfold.domain.oauth.client_rules import NewClient
from billfold.domain.oauth.clients import (
    add_client_key,
    client_keys,
    find_client,
    list_clients,
    register_client,
    revoke_client,
    rotate_client_key,
)
from billfold.domain.oauth.refusals import OAuthError
from billfold.domain.oauth.scopes import SCOPES
from billfold.domain.oauth.tokens import ACCESS_LASTS, find_access, issue_access
from billfold.domain.oauth.types import Access, Client, ClientKey, Grant, PendingRequest

__all__ = [
    "ACCESS_LASTS",
    "SCOPES",
    "Access",
    "Client",
    "ClientKey",
    "Grant",
    "NewClient",
    "OAuthError",
    "PendingRequest",
    "add_client_key",
    "client_keys",
    "dpop",
    "find_access",
    "find_client",
    "issue_access",
    "list_clients",
    "register_client",
    "revoke_client",
    "rotate_client_key",
]
