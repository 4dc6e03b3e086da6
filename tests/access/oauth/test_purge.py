"""What has outlived its use goes, what is in force stays."""

from datetime import timedelta

from tests.support.oauth_clients import SPA, program
from tests.support.oauth_users import company, member

from billfold.access.oauth import access_tokens, dpop, purge
from billfold.platform.clock import wall_now


async def test_what_has_expired_is_removed_and_nothing_else(conn):
    now = wall_now()
    anna = await member(conn, await company(conn))
    await program(conn)
    for ago in (0, 901):
        await access_tokens.issue_access(
            conn,
            client_id="books",
            customer_id=anna.customer_id,
            user_id=anna.user_id,
            scopes=("openid",),
            now=now - timedelta(seconds=ago),
        )
        until = now + timedelta(seconds=20 - ago)
        assert await dpop.consume_proof(conn, SPA.thumbprint, f"jti {ago}", until=until)

    await purge.purge_oauth(conn, now)

    assert await conn.fetchval("SELECT count(*) FROM access_token") == 1
    assert await conn.fetchval("SELECT count(*) FROM consumed_dpop_proof") == 1
    assert not await dpop.consume_proof(conn, SPA.thumbprint, "jti 0", until=now)
