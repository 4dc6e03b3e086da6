"""Who may call: partners, their users, signing secrets, public keys and access tokens.

Owns how they are made, looked up and taken out of use, on the wall clock. Never decides what a
caller may do with money. Secrets are returned once, when they are made.
"""

from billfold.domain.identity.reads import (
    find_credential,
    find_key,
    find_partner,
    find_user,
    list_partners,
)
from billfold.domain.identity.rules import (
    FEATURES,
    LOCK_LASTS,
    OVERLAP,
    TOKEN_LASTS,
    check_slug,
    locked_for,
)
from billfold.domain.identity.types import Credential, KeyRow, NewPartner, PartnerRow, UserRow
from billfold.domain.identity.writes import (
    add_key,
    add_user,
    create_partner,
    disable_feature,
    enable_feature,
    forget_failures,
    issue_token,
    purge_identity,
    record_failure,
    record_stranger,
    revoke_key,
    rotate_secret,
    set_limits,
    set_password,
    stranger_locked_for,
    use_assertion,
)

__all__ = [
    "FEATURES",
    "LOCK_LASTS",
    "OVERLAP",
    "TOKEN_LASTS",
    "Credential",
    "KeyRow",
    "NewPartner",
    "PartnerRow",
    "UserRow",
    "add_key",
    "add_user",
    "check_slug",
    "create_partner",
    "disable_feature",
    "enable_feature",
    "find_credential",
    "find_key",
    "find_partner",
    "find_user",
    "forget_failures",
    "issue_token",
    "list_partners",
    "locked_for",
    "purge_identity",
    "record_failure",
    "record_stranger",
    "revoke_key",
    "rotate_secret",
    "set_limits",
    "set_password",
    "stranger_locked_for",
    "use_assertion",
]
