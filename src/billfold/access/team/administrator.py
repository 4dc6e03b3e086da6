"""The caller as an administrator, who is named in e-mails, notifications and the audit log."""

from __future__ import annotations

from billfold.access.team import store as team_store
from billfold.access.team.transaction import Administrator
from billfold.http.caller import CustomerCaller
from billfold.ledger.bank import Bank


async def calling_administrator(member: CustomerCaller, bank: Bank) -> Administrator:
    """Return the caller. The authenticator has checked that token and role include `team.write`."""
    access = member.access
    name = access.client_id
    if access.member_id is not None:
        found = await team_store.get_member(bank.pool, member.customer_id, access.member_id, now=member.now)
        name = found.name
    return Administrator(
        pool=bank.pool,
        vault=bank.vault,
        customer_id=member.customer_id,
        customer_name=(await member.customer(bank)).name,
        name=name,
        origin=member.origin,
        scopes=access.scopes if access.user_id is None else None,
        pages=bank.settings.auth_origin,
        now=member.now,
        wall=member.wall,
    )
