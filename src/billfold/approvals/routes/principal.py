"""The caller as an actor that requests or decides."""

from typing import Any

from billfold.approvals.actor import Actor
from billfold.approvals.store import approval_rules
from billfold.http.responses import ProblemWithHeaders
from billfold.identity.members import store as team_store
from billfold.identity.users.rules import RECENT_AUTHENTICATION_WINDOW
from billfold.ledger.bank import Bank
from billfold.oauth.authentication import CustomerCaller
from billfold.platform.errors import Refused

REVIEW_ERRORS = (
    "self-approval",
    "not-a-reviewer",
    "insufficient-user-authentication",
    "already-reviewed",
    "approval-out-of-order",
    "content-changed",
)
"""What a decision about any request may be refused with."""


async def principal_of(member: CustomerCaller, bank: Bank) -> Actor:
    """Return the caller as an actor. The authenticator has checked token and role."""
    return Actor(**await actor_fields(member, bank))


async def actor_fields(member: CustomerCaller, bank: Bank) -> dict[str, Any]:
    """Return the fields of `Actor` for a caller."""
    access = member.access
    if access.member_id is None:
        raise Refused("forbidden", "The client is of no team.")
    found = await team_store.get_member(
        bank.pool, bank.vault, member.customer_id, member_id=access.member_id, now=member.now
    )
    return {
        "pool": bank.pool,
        "vault": bank.vault,
        "customer_id": member.customer_id,
        "member_id": access.member_id,
        "user_id": access.user_id,
        "client_id": access.client_id,
        "role": access.role,
        "scopes": access.scopes,
        "name": found.name,
        "origin": member.origin,
        "now": member.now,
        "business_date": bank.calendars.business_date(member.now),
        "wall": member.wall,
        "confirmation": access.confirmation,
    }


async def check_recent_authentication(member: CustomerCaller, bank: Bank) -> None:
    """Refuse an approval without a recent sign-in.

    Clients of the profile `fapi2` need a token of the last five minutes; others do where the customer's setting says
    so, and by default in production. Raises `insufficient-user-authentication` as RFC 9470 has it.
    """
    access = member.access
    if not access.is_fapi2 and not await approval_rules.requires_step_up(
        bank.pool, member.customer_id, default=bank.settings.is_production
    ):
        return
    if access.auth_time is not None and member.wall - access.auth_time <= RECENT_AUTHENTICATION_WINDOW:
        return
    scheme = "Bearer" if access.jkt is None else "DPoP"
    seconds = int(RECENT_AUTHENTICATION_WINDOW.total_seconds())
    value = (
        f'{scheme} error="insufficient_user_authentication", '
        f'error_description="A more recent authentication is required", max_age="{seconds}"'
    )
    raise ProblemWithHeaders(
        "insufficient-user-authentication",
        f"An approval needs a sign-in within the last {seconds // 60} minutes. Sign in again.",
        (b"www-authenticate", value.encode()),
    )
