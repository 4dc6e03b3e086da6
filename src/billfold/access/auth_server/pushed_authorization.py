"""Pushed authorization requests (RFC 9126): what a client wants, told behind the browser's back."""

from __future__ import annotations

import msgspec

from billfold.access.auth_server.auth_server import Desk
from billfold.access.auth_server.form_params import form_of
from billfold.access.auth_server.openapi import PUSH_TOLD
from billfold.access.oauth import authorization_requests
from billfold.access.oauth.rules import authorization_params as asking
from billfold.http.operations import OPEN, post
from billfold.http.raw_request import RawRequest
from billfold.http.responses import HttpResponse, json_response
from billfold.platform.clock import wall_now


class PushedAnswer(msgspec.Struct, frozen=True):
    """What stands for the request, and for how many seconds."""

    request_uri: str
    expires_in: int


@post("/api/oauth2/par", OPEN, tag="authorization", any_query=True, documented=PUSH_TOLD)
async def push_authorization_request(request: RawRequest, desk: Desk) -> HttpResponse:
    """Keep an authorization request and answer the `request_uri` that stands for it.

    A DPoP proof, or `dpop_jkt`, binds the code to that key.
    """
    now = wall_now()
    form = form_of(request)
    proven = await desk.prove(request, form, now)
    asked = asking.read_request(proven.client, form, proven=proven.jkt)
    request_uri, seconds = await authorization_requests.push_request(
        desk.bank.pool, proven.client, asked, now
    )
    answer = PushedAnswer(request_uri, seconds)
    return json_response(answer, 201, *desk.nonce_for(proven.client, now))
