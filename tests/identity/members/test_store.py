"""People and memberships: one address, one person; one role per company."""

from datetime import UTC, datetime

import pytest
from tests.support.oauth import company

from billfold.identity.members import store as member_store
from billfold.identity.users import store as user_store
from billfold.platform import ids
from billfold.platform.crypto import Vault
from billfold.platform.errors import NotFound, Refused

VAULT = Vault(bytes(32))
NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)


async def enrol(conn, email="anna@b.example"):
    return await member_store.create_user(conn, VAULT, email=email, first_name="Anna", last_name="L", now=NOW)


async def test_an_email_address_belongs_to_one_user(conn):
    await enrol(conn)
    with pytest.raises(Refused):
        await enrol(conn, "ANNA@b.example")


async def test_a_deactivated_member_is_reactivated_with_a_new_role(conn):
    customer_id, user_id = await company(conn), await enrol(conn)
    first = await member_store.add_member(conn, customer_id, user_id, role="VIEWER", now=NOW)
    await member_store.deactivate_member(conn, customer_id, user_id, now=NOW)
    [left] = await user_store.list_user_memberships(conn, user_id)
    assert left.status == "DEACTIVATED"
    assert await member_store.add_member(conn, customer_id, user_id, role="ADMIN", now=NOW) == first
    [back] = await user_store.list_user_memberships(conn, user_id)
    assert (back.role, back.status, back.customer_name) == ("ADMIN", "ACTIVE", "Northwind")


async def test_adding_or_deactivating_a_member_of_an_unknown_customer_raises_not_found(conn):
    with pytest.raises(NotFound):
        await member_store.add_member(conn, ids.new(), await enrol(conn), role="ADMIN", now=NOW)
    with pytest.raises(NotFound):
        await member_store.deactivate_member(conn, ids.new(), ids.new(), now=NOW)
