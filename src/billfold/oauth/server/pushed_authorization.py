"""Pushed authorization requests (RFC 9126): parameters sent directly, not through the browser."""

from __future__ import annotations

import msgspec

from billfold.oauth.server.auth_server import AuthServer
from billfold.oauth.server.openapi import PUSH_OPENAPI
from billfold.oauth import authorization_requests
from billfold.oauth.endpoint import form_of
from billfold.oauth.rules import authorization_params as asking
from billfold.http.operations import PER_ADDRESS, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, json_response
from billfold.platform.clock import wall_now


class PushedAnswer(msgspec.Struct, frozen=True):
    """What stands for the request, and for how many seconds."""

    request_uri: str
    expires_in: int


@post("/api/oauth2/par", PER_ADDRESS, tag="authorization", any_query=True, documented=PUSH_OPENAPI)
async def push_authorization_request(request: RawRequest, server: AuthServer) -> HttpResponse:
    """Keep an authorization request and answer the `request_uri` that stands for it.

    A DPoP proof, or `dpop_jkt`, binds the code to that key.
    """
    now = wall_now()
    form = form_of(request)
    proven = await server.prove(request, form, now)
    authorization = asking.parse_authorization_params(proven.client, form, proven=proven.jkt)
    request_uri, seconds = await authorization_requests.push_request(
        server.bank.pool, proven.client, authorization, now=now
    )
    answer = PushedAnswer(request_uri, seconds)
    return json_response(answer, 201, *server.nonce_headers(proven.client, now))
