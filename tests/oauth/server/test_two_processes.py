"""Single use of proofs and assertions across real worker processes."""

import asyncio
import time

from tests.support.oauth import JWT_BEARER, KEYS, SPA, company, member, program, proof, raw_jwt

from billfold.oauth import grants
from billfold.platform import ids
from billfold.platform.clock import wall_now

AT_ONCE = 12


async def at_once(http, method, path, **options):
    """Return the statuses of the same request sent concurrently over many connections."""
    made = await asyncio.gather(*(http.request(method, path, **options) for _ in range(AT_ONCE)))
    return sorted(each.status_code for each in made)


async def test_dpop_proofs_and_assertions_are_single_use_across_processes(served, founded):
    conn = founded
    oauth_user = await member(conn, await company(conn))
    await program(conn, "books", requires_nonce=False)
    token = await grants.issue_access(
        conn,
        client_id="books",
        customer_id=oauth_user.customer_id,
        user_id=oauth_user.user_id,
        scopes=("openid", "profile"),
        now=wall_now(),
        jkt=SPA.thumbprint,
    )
    sent = proof("GET", served.issuer + "/api/v1/user", token=token)
    now = int(time.time())
    claims = {"iss": "books", "sub": "books", "aud": served.issuer, "iat": now, "exp": now + 60, "jti": str(ids.new())}
    form = {"client_assertion_type": JWT_BEARER, "client_assertion": raw_jwt(KEYS["ES256"], claims, {}), "token": token}
    async with served.client() as http:
        proven = {"authorization": f"DPoP {token}", "dpop": sent}
        proofs = await at_once(http, "GET", "/api/v1/user", headers=proven)
        asserted = await at_once(http, "POST", "/api/oauth2/introspect", data=form)
    assert proofs == [200] + [401] * (AT_ONCE - 1)
    assert asserted == [200] + [401] * (AT_ONCE - 1)
