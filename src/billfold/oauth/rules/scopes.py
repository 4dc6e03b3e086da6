"""The scopes of the Customer API: what each grants, as the consent page says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from billfold.oauth.errors import OAuthError

SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "openid": "Know who you are",
        "profile": "See your name and your memberships",
        "email": "See your email address",
        "phone": "See your phone number",
        "pockets.read": "See Pockets, what they are worth, their portals, transactions and trades",
        "pockets.write": "Open, change and close Pockets and portals",
        "transfers.read": "See transfers, transfer requests and counterparties",
        "transfers.write": "Request transfers and change counterparties",
        "customer.read": "See the company's details",
        "customer.write": "Change the company's details",
        "team.read": "See the team and what its members did",
        "team.write": "Invite, change and remove members of the team",
        "onboarding.read": "See business applications and documents",
        "onboarding.write": "Fill in and send business applications and documents",
        "agreements.read": "See agreements",
        "subscriptions.read": "See events and webhook subscriptions",
        "subscriptions.write": "Change webhook subscriptions",
        "approval_rules.read": "See the rules by which transfers are approved",
        "approval_rules.write": "Change the rules by which transfers are approved",
        "authorization_requests.read": "See requests to confirm sensitive changes",
        "authorization_requests.write": "Confirm or refuse sensitive changes",
        "notifications.read": "See notifications and who gets them",
        "notifications.write": "Mark notifications and change who gets them",
        "reports.read": "See and download reports",
        "reports.write": "Order reports",
    }
)
"""Scope -> what it grants, in the order of `service.md`'s table, the later ones at the end."""

_GROUPS = ("Move money", "Change", "See", "About you")
"""What scopes let an application do, the weightiest first."""
_MOVES_MONEY = frozenset({"transfers.write"})

PERSONAL_SCOPES = frozenset({"openid", "profile", "email", "phone"})
"""Scopes about a user: service users cannot have them."""


def parse_scopes(text: str | None, allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the requested scopes in the canonical order; all allowed ones when none is named.

    Raises OAuthError `invalid_scope` for one that is unknown or not allowed.
    """
    allowed_scopes = set(allowed)
    requested = set((text or "").split(" ")) - {""} or allowed_scopes
    not_allowed = sorted(requested - allowed_scopes)
    if not_allowed:
        named = " ".join(each for each in not_allowed if each in SCOPES) or "one of the requested scopes"
        raise OAuthError("invalid_scope", f"This client may not have the scope: {named}.")
    return sort_scopes(requested)


def sort_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """Return scopes in the order of `SCOPES`, each once."""
    requested = set(scopes)
    return tuple(each for each in SCOPES if each in requested)


def group_scopes(scopes: Iterable[str]) -> list[tuple[str, dict[str, str]]]:
    """Return scopes with their words under the headings of a consent page: what moves money comes first."""
    groups: dict[str, dict[str, str]] = {heading: {} for heading in _GROUPS}
    for scope in sort_scopes(scopes):
        groups[_heading_of(scope)][scope] = SCOPES[scope]
    return [(heading, words) for heading, words in groups.items() if words]


def _heading_of(scope: str) -> str:
    moves_money, changes, reads, personal = _GROUPS
    if scope in _MOVES_MONEY:
        return moves_money
    if scope in PERSONAL_SCOPES:
        return personal
    return changes if scope.endswith(".write") else reads
