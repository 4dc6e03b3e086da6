"""The authorization server's nouns: clients, requests, grants, codes, tokens, proofs, keys.

Owns what a token of the Customer API stands for, on the wall clock, and the rules by which one
comes about. Never decides what its holder may do with money, and never who a person is.
"""

from billfold.domain.oauth import (
    asking,
    assertions,
    claims,
    dpop,
    keys,
    message_signatures,
    signing,
)
from billfold.domain.oauth.answers import approve, deny, form_target, redirect_with
from billfold.domain.oauth.client_rules import GRANT_TYPES, PROFILES, NewClient
from billfold.domain.oauth.clients import (
    add_client_key,
    client_keys,
    clients_of,
    find_client,
    find_client_of,
    list_clients,
    read_key,
    register_client,
    restore_client,
    retire_client_key,
    revoke_client,
    revoke_client_key,
    rotate_client_key,
)
from billfold.domain.oauth.exchanges import Exchanged, redeem_code, refresh
from billfold.domain.oauth.grants import (
    Told,
    grants_of,
    leave_session,
    revoke_all_of,
    revoke_grant,
    revoke_member,
    revoke_session,
    revoke_token,
    tell_of,
)
from billfold.domain.oauth.purging import purge_oauth
from billfold.domain.oauth.refusals import OAuthError
from billfold.domain.oauth.requests import (
    open_request,
    pending_request,
    push_request,
    resume_request,
)
from billfold.domain.oauth.scopes import PERSONAL, SCOPES, scopes_in
from billfold.domain.oauth.tokens import ACCESS_LASTS, find_access, issue_access, issue_to
from billfold.domain.oauth.types import (
    BY_ITSELF,
    CODE,
    REFRESH,
    SERVICE_ROLE,
    Access,
    Client,
    ClientKey,
    Grant,
    Holder,
    Issued,
    PendingRequest,
)

__all__ = [
    "ACCESS_LASTS",
    "BY_ITSELF",
    "CODE",
    "GRANT_TYPES",
    "PERSONAL",
    "PROFILES",
    "REFRESH",
    "SCOPES",
    "SERVICE_ROLE",
    "Access",
    "Client",
    "ClientKey",
    "Exchanged",
    "Grant",
    "Holder",
    "Issued",
    "NewClient",
    "OAuthError",
    "PendingRequest",
    "Told",
    "add_client_key",
    "approve",
    "asking",
    "assertions",
    "claims",
    "client_keys",
    "clients_of",
    "deny",
    "dpop",
    "find_access",
    "find_client",
    "find_client_of",
    "form_target",
    "grants_of",
    "issue_access",
    "issue_to",
    "keys",
    "leave_session",
    "list_clients",
    "message_signatures",
    "open_request",
    "pending_request",
    "purge_oauth",
    "push_request",
    "read_key",
    "redeem_code",
    "redirect_with",
    "refresh",
    "register_client",
    "restore_client",
    "resume_request",
    "retire_client_key",
    "revoke_all_of",
    "revoke_client",
    "revoke_client_key",
    "revoke_grant",
    "revoke_member",
    "revoke_session",
    "revoke_token",
    "rotate_client_key",
    "scopes_in",
    "signing",
    "tell_of",
]
