"""A company and its members, as far as the authorization server looks at them."""

from dataclasses import dataclass
from uuid import UUID

from tests.support.whole_bank import VAULT

from billfold.identity.users.contact_details import COLUMNS, USERS
from billfold.platform import ids
from billfold.platform.clock import wall_now


@dataclass
class Member:
    """A person in the team of a customer."""

    user_id: UUID
    member_id: UUID
    customer_id: UUID


async def company(conn, name="Northwind", *, partner_id="new", opened_at=None):
    """Return the id of a customer, of a partner of its own unless told otherwise."""
    customer_id = ids.new()
    await conn.execute(
        "INSERT INTO customer (customer_id, partner_id, role, type, name, account_status, profile, "
        "opened_at, agreement_version) VALUES ($1, $2, 'customer', 'BUSINESS', $3, 'OPEN', '{}', $4, '2025-06-01')",
        customer_id,
        ids.new() if partner_id == "new" else partner_id,
        name,
        opened_at or wall_now(),
    )
    return customer_id


async def member(
    conn, customer_id, *, role="ADMIN", user_id=None, member_id=None, email=None, name="Anna", joined_at=None
):
    """Return a member of a customer's team, a new person unless one is given without an address."""
    now, member_id = wall_now(), member_id or ids.new()
    if user_id is None or email is not None:
        user_id = user_id or ids.new()
        contact = USERS.seal(VAULT, user_id, email or f"{user_id}@example.com", phone_number="+12025550123")
        await conn.execute(
            f"INSERT INTO user_account (user_id, email_verified_at, first_name, last_name, created_at, {COLUMNS}) "
            "VALUES ($1, $2, $3, 'Lind', $2, $4, $5, $6)",
            user_id,
            now,
            name,
            *contact,
        )
    await conn.execute(
        "INSERT INTO membership (customer_id, user_id, member_id, role, status, created_at, "
        "changed_at) VALUES ($1, $2, $3, $4, 'ACTIVE', $5, $5)",
        customer_id,
        user_id,
        member_id,
        role,
        joined_at or now,
    )
    return Member(user_id, member_id, customer_id)
