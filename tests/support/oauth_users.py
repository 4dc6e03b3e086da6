"""A company and its members, as far as the authorization server looks at them."""

from dataclasses import dataclass
from uuid import UUID

from billfold.platform import ids
from billfold.platform.clock import wall_now


@dataclass
class Member:
    """A person in the team of a customer."""

    user_id: UUID
    member_id: UUID
    customer_id: UUID


async def company(conn, name="Northwind"):
    """Return the id of a customer of the bank."""
    customer_id = ids.new()
    await conn.execute(
        "INSERT INTO customer (customer_id, partner_id, role, type, name, account_status, profile, "
        "opened_at) VALUES ($1, $2, 'customer', 'BUSINESS', $3, 'OPEN', '{}', $4)",
        customer_id,
        ids.new(),
        name,
        wall_now(),
    )
    return customer_id


async def member(conn, customer_id, *, role="ADMIN", user_id=None):
    """Return a member of a customer's team, a new person unless one is given."""
    now, member_id = wall_now(), ids.new()
    if user_id is None:
        user_id = ids.new()
        await conn.execute(
            "INSERT INTO user_account (user_id, email, email_verified_at, first_name, last_name, "
            "phone_number, created_at) VALUES ($1, $2, $3, 'Anna', 'Lind', '+12025550123', $3)",
            user_id,
            f"{user_id}@example.com",
            now,
        )
    await conn.execute(
        "INSERT INTO membership (customer_id, user_id, member_id, role, status, created_at, "
        "changed_at) VALUES ($1, $2, $3, $4, 'ACTIVE', $5, $5)",
        customer_id,
        user_id,
        member_id,
        role,
        now,
    )
    return Member(user_id, member_id, customer_id)
