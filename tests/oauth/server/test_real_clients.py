"""openid-client and oauth4webapi, driven by Node, live a whole life with a running server."""

import asyncio
import json
import os
from uuid import UUID

import jwt
from tests.node.runtime import node_command
from tests.support.oauth import KEYS, REDIRECT, company, member, program

from billfold.oauth import consent
from billfold.platform import ids
from billfold.platform.clock import wall_now

SCOPE = "openid profile pockets.read"
PATIENCE_SECONDS = 90


async def run_script(script, served, conn, user, **given):
    """Run a script to its end and give consent for the user; return its result."""
    node = await asyncio.create_subprocess_exec(
        *node_command(script),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"NODE_EXTRA_CA_CERTS": str(served.authority)},
    )
    assert node.stdin
    assert node.stdout
    assert node.stderr
    send(node, json.dumps(given | {"issuer": served.issuer, "redirect_uri": REDIRECT}))
    while line := await asyncio.wait_for(node.stdout.readline(), PATIENCE_SECONDS):
        said = json.loads(line)
        if "done" in said:
            await node.wait()
            return said["done"]
        send(node, await give_consent(served, conn, user, request_id=UUID(said["request"])))
    raise AssertionError((await node.stderr.read()).decode())


def send(node, line):
    node.stdin.write(line.encode() + b"\n")


async def give_consent(served, conn, user, request_id):
    now = wall_now()
    return await consent.approve(
        conn,
        request_id,
        user_id=user.user_id,
        customer_id=user.customer_id,
        authenticated_at=now,
        session_id=ids.new(),
        issuer=served.issuer,
        now=now,
    )


async def test_real_oauth_clients_complete_every_flow(served, founded):
    oauth_user = await member(founded, await company(founded))
    books_client = await program(founded, "books")
    ledger_client = await program(founded, "ledger", profile="documented", keys=("PS256",))
    robot = await program(
        founded,
        "robot",
        keys=("EdDSA",),
        grant_types=("client_credentials",),
        redirect_uris=(),
        customer_id=oauth_user.customer_id,
        scopes=("pockets.read",),
    )
    strict = client_config(books_client, "ES256") | {"id_token_alg": "PS256", "dpop": True, "par": True}
    loose = client_config(ledger_client, "PS256") | {"id_token_alg": "RS256", "dpop": False, "par": False}

    told = await run_script("openid_client.mjs", served, founded, oauth_user, **strict)
    assert told == {**expected(oauth_user, "dpop"), "reused": "invalid_grant"}

    told = await run_script("openid_client.mjs", served, founded, oauth_user, **loose)
    assert told == {**expected(oauth_user, "bearer"), "reused": "invalid_grant"}

    told = await run_script("oauth4webapi.mjs", served, founded, oauth_user, **strict)
    assert told.pop("asks") > 4, "no nonce was asked for"
    assert told == expected(oauth_user, "dpop")

    told = await run_script(
        "client_credentials.mjs",
        served,
        founded,
        oauth_user,
        **client_config(robot, "EdDSA") | {"scope": "pockets.read"},
    )
    assert told == {"token_type": "dpop", "scope": "pockets.read", "refresh": False}


def client_config(client, algorithm):
    key = KEYS[algorithm]
    return {
        "client_id": client.client_id,
        "key": jwt.get_algorithm_by_name(algorithm).to_jwk(key.private, as_dict=True),
        "kid": key.thumbprint,
        "scope": SCOPE,
    }


def expected(user, token_type):
    return {
        "token_type": token_type,
        "expires_in": 900,
        "name": "Anna Lind",
        "sub": str(user.user_id),
        "told": {
            "active": True,
            "scope": SCOPE,
            "token_type": {"dpop": "DPoP", "bearer": "Bearer"}[token_type],
            "bound": token_type == "dpop",
        },
        "after": False,
    }
