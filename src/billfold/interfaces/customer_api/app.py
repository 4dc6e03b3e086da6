"""The Customer API put together: the routes of every resource behind one door."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from litestar import Litestar, Request, Response
from litestar.di import Provide
from litestar.exceptions import NotAuthorizedException
from litestar.middleware import DefineMiddleware
from litestar.types import ControllerRouterHandler

from billfold import __version__
from billfold.engine.bank import Bank
from billfold.interfaces.customer_api.door import MemberDoor, Usher
from billfold.interfaces.customer_api.member import Member
from billfold.interfaces.customer_api.told import DESCRIPTION, TITLE, components
from billfold.interfaces.http.answers import answer_to
from billfold.interfaces.http.arrivals import ArrivedRequest, arrival_of
from billfold.interfaces.http.frame import Frame
from billfold.interfaces.http.openapi import Described, Document, describe
from billfold.interfaces.http.operations import operations_of
from billfold.interfaces.http.pages import PAGES, reference_pages
from billfold.interfaces.http.signatures import plain_signatures
from billfold.kit.settings import Settings

_INJECTED = ("bank", "member")


def customer_routes() -> list[ControllerRouterHandler]:
    """Return the ROUTES of every module here."""
    here = importlib.import_module(str(__package__))
    found: list[ControllerRouterHandler] = []
    for module in pkgutil.iter_modules(here.__path__, f"{here.__name__}."):
        found += getattr(importlib.import_module(module.name), "ROUTES", ())
    return found


def create_customer_app(bank: Bank) -> Litestar:
    """Return the ASGI application of one worker. Whoever opens the bank starts its engine."""
    usher = Usher(bank)

    def the_bank() -> Bank:
        return bank

    with plain_signatures():
        app = Litestar(
            route_handlers=[
                *customer_routes(),
                *PAGES,
                *reference_pages(lambda: customer_document(bank.settings)),
            ],
            middleware=[DefineMiddleware(MemberDoor, usher=usher)],
            dependencies={
                "bank": Provide(the_bank, sync_to_thread=False),
                "member": Provide(_the_member, sync_to_thread=False),
            },
            exception_handlers={Exception: _on_error},
            request_class=ArrivedRequest,
            openapi_config=None,
            logging_config=None,
            on_shutdown=[usher.close],
        )
    usher.operations = operations_of(app)
    app.asgi_handler = Frame(app.asgi_handler, bank.settings, usher.clock_face)
    return app


def customer_document(settings: Settings) -> Document:
    """Return the OpenAPI document of the Customer API; no bank needs to be open for it."""
    what = Described(
        routes=customer_routes(),
        injected=_INJECTED,
        title=TITLE,
        version=__version__,
        description=DESCRIPTION,
        servers=[{"url": settings.customer_origin}],
        examples=_examples(),
        components=components(settings),
    )
    return describe(what)


@cache
def _examples() -> Mapping[str, Mapping[str, Any]]:
    """Return the packaged examples: operationId -> {"request": ..., "response": ...}."""
    packaged = files(__package__).joinpath("examples.json")
    if not packaged.is_file():
        return {}
    found: Mapping[str, Mapping[str, Any]] = msgspec.json.decode(packaged.read_bytes())
    return found


def _the_member(request: ArrivedRequest) -> Member:
    member = arrival_of(request.scope).caller
    if not isinstance(member, Member):
        raise NotAuthorizedException
    return member


def _on_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    answer = answer_to(error, arrival_of(request.scope))
    return Response(
        answer.body,
        status_code=answer.status,
        media_type=answer.content_type,
        headers={name.decode(): value.decode("latin-1") for name, value in answer.headers},
    )
