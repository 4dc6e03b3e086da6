"""Pushed authorization requests (RFC 9126): what a client wants, told behind the browser's back."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, post
from litestar.handlers import HTTPRouteHandler

from billfold.domain import oauth
from billfold.domain.oauth import asking
from billfold.interfaces.auth.desk import Desk
from billfold.interfaces.auth.forms import form_of
from billfold.interfaces.auth.told import PUSH_TOLD
from billfold.interfaces.http.arrivals import ArrivedRequest, arrival_of
from billfold.interfaces.http.marks import ANY_QUERY, OPEN
from billfold.kit.clock import wall_now


class PushedAnswer(msgspec.Struct, frozen=True):
    """What stands for the request, and for how many seconds."""

    request_uri: str
    expires_in: int


@post("/api/oauth2/par", opt=OPEN | ANY_QUERY | PUSH_TOLD, status_code=201, tags=["authorization"])
async def push_authorization_request(request: ArrivedRequest, desk: Desk) -> Response[Any]:
    """Keep an authorization request and answer the `request_uri` that stands for it.

    A DPoP proof, or `dpop_jkt`, binds the code to that key.
    """
    arrival, now = arrival_of(request.scope), wall_now()
    form = form_of(arrival)
    proven = await desk.prove(arrival, form, now)
    asked = asking.read_request(proven.client, form, proven=proven.jkt)
    request_uri, seconds = await oauth.push_request(desk.bank.pool, proven.client, asked, now)
    headers = {name.decode(): value.decode() for name, value in desk.nonce_for(proven.client, now)}
    return Response(PushedAnswer(request_uri, seconds), headers=headers)


ROUTES: list[HTTPRouteHandler] = [push_authorization_request]
