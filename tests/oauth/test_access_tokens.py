"""Access tokens: what they grant and when they expire."""

from datetime import timedelta

import pytest
from tests.support.oauth import SPA, company, member, program

from billfold.oauth import grants
from billfold.platform.clock import wall_now


@pytest.fixture
async def anna(conn):
    return await member(conn, await company(conn), role="MANAGER")


@pytest.fixture
async def client(conn):
    return await program(conn)


async def issue(conn, client, anna, **changed):
    fields = {
        "client_id": client.client_id,
        "user_id": anna.user_id,
        "customer_id": anna.customer_id,
        "scopes": ("pockets.read",),
        "now": wall_now(),
        "jkt": SPA.thumbprint,
    } | changed
    return await grants.issue_access(conn, **fields)


async def test_an_access_token_identifies_a_client_a_user_and_one_customer(conn, client, anna):
    now = wall_now()
    token = await issue(conn, client, anna, now=now, auth_time=now)

    found = await grants.find_access_token(conn, token, now)

    assert found is not None
    assert (found.client_id, found.user_id) == (client.client_id, anna.user_id)
    assert (found.customer_id, found.role, found.member_id) == (anna.customer_id, "MANAGER", anna.member_id)
    assert found.scopes == {"pockets.read"}
    assert found.jkt == SPA.thumbprint
    assert found.expires_at == now + timedelta(seconds=900)
    assert len(token) >= 43


async def test_an_access_token_expires_after_900_seconds(conn, client, anna):
    now = wall_now()
    token = await issue(conn, client, anna, now=now)
    assert await grants.find_access_token(conn, token, now + timedelta(seconds=899))
    assert await grants.find_access_token(conn, token, now + timedelta(seconds=900)) is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE membership SET status = 'DEACTIVATED'",
        "UPDATE user_account SET status = 'DEACTIVATED'",
        "UPDATE oauth_client SET revoked_at = now()",
    ],
)
async def test_an_access_token_ends_immediately_with_its_client_user_or_membership(conn, client, anna, statement):
    token = await issue(conn, client, anna)
    await conn.execute(statement)
    assert await grants.find_access_token(conn, token, wall_now()) is None


async def test_an_access_token_of_a_service_user_has_no_user(conn, anna):
    robot = await program(
        conn,
        "robot",
        grant_types=("client_credentials",),
        redirect_uris=(),
        customer_id=anna.customer_id,
        scopes=("pockets.read",),
    )
    token = await issue(conn, robot, anna, user_id=None)
    found = await grants.find_access_token(conn, token, wall_now())
    assert found is not None
    assert (found.user_id, found.member_id, found.role) == (None, robot.member_id, "SERVICE")


async def test_only_the_hash_of_an_access_token_is_stored(conn, client, anna):
    token = await issue(conn, client, anna)
    row = await conn.fetchrow("SELECT * FROM access_token")
    assert token not in str(dict(row))
    assert await grants.find_access_token(conn, token[:-1], wall_now()) is None
