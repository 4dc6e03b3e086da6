"""What the application declares of each operation, read once from its routes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from litestar.routes import HTTPRoute

from billfold.interfaces.http.arrivals import Arrival
from billfold.interfaces.http.bodies import decode, missing_body
from billfold.interfaces.http.marks import Group
from billfold.interfaces.http.straight import Give, Straight, gifts_of, straight_to
from billfold.kit.errors import BillfoldError, FieldError, InvalidInput

if TYPE_CHECKING:
    from litestar import Litestar
    from litestar.handlers import HTTPRouteHandler

SANDBOX = "/api/v1/sandbox/"
_JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `body` is None without a JSON body.

    `door` is open, bearer, unsigned or signed for a partner's requests, open or granted for those
    of the Customer API, which need a `scope`, a role that includes what it `needs`, and are
    counted with their `group`.
    """

    name: str
    door: str = "open"
    scope: str = ""
    needs: str = ""
    group: Group | None = None
    moves_money: bool = False
    body: Any = None
    body_optional: bool = False
    query: frozenset[str] | None = None
    lists: frozenset[str] = frozenset()
    """The names of the query that may be there several times."""
    deprecated: tuple[date, date] | None = None
    takes_file: bool = False
    straight: Straight | None = None
    """How it is called from the door, when it needs nothing of the framework."""

    def read(self, arrival: Arrival, query: bytes) -> None:
        """Check the query's names and decode the body. Raises what is wrong with them."""
        if query and self.query is not None:
            self._check_query(query)
        if self.body is None:
            return
        if not arrival.body:
            if not self.body_optional:
                raise missing_body()
            return
        sent = arrival.header(b"content-type")
        if sent is not None and not _JSON_TYPE.fullmatch(sent):
            raise BillfoldError("unsupported-media-type", "Send the body as application/json.")
        arrival.decoded = decode(arrival.body, self.body)

    def _check_query(self, query: bytes) -> None:
        parts = query.decode("latin-1").split("&")
        sent = Counter(unquote_plus(part.partition("=")[0]) for part in parts if part)
        known = self.query or frozenset()
        wrong = [
            FieldError(("query", name), "is not a parameter of this operation", "extra_forbidden")
            for name in sorted(sent.keys() - known)
        ]
        wrong += [
            FieldError(("query", name), "may be there only once", "value_error")
            for name in sorted(known - self.lists)
            if sent[name] > 1
        ]
        if wrong:
            raise InvalidInput(wrong)


OPTIONS = Operation("options")


def operations_of(app: Litestar) -> dict[HTTPRouteHandler, Operation]:
    """Return the declared operations of an application under their handlers."""
    gifts = gifts_of(app)
    return {
        handler: _operation(
            handler,
            route,
            gifts,
            {each.field_alias for each in model.expected_query_params},
            {each.field_alias for each in model.expected_query_params if each.is_sequence},
        )
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for method, (handler, model) in route.route_handler_map.items()
        if method != "OPTIONS"
    }


def one_by_one(app: Litestar) -> Litestar:
    """Return the application finding what route functions ask for by name one after the other.

    Litestar starts a task for each where several do not depend on one another. Ours never wait, and
    a task costs more than finding all of them.
    """
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for _, model in route.route_handler_map.values():
                model.dependency_batches = [
                    {each} for batch in model.dependency_batches for each in batch
                ]
    return app


def operation_name(handler: HTTPRouteHandler) -> str:
    """Return the operationId: as declared, or the name of the function."""
    declared = handler.operation_id
    return declared if isinstance(declared, str) else handler.handler_name


def door_of(handler: HTTPRouteHandler, path: str) -> str:
    """Return the door of an operation: as marked; bearer below /api/v1/sandbox/; else signed."""
    usual = "bearer" if path.startswith(SANDBOX) else "signed"
    return str(handler.opt.get("door", usual))


def _operation(
    handler: HTTPRouteHandler,
    route: HTTPRoute,
    gifts: Mapping[str, Give],
    query: set[str],
    lists: set[str],
) -> Operation:
    opt = handler.opt
    data = handler.parsed_fn_signature.parameters.get("data")
    return Operation(
        name=operation_name(handler),
        door=door_of(handler, route.path),
        scope=opt.get("scope", ""),
        needs=opt.get("needs", ""),
        group=opt.get("group"),
        moves_money=bool(opt.get("moves_money")),
        body=None if data is None else data.annotation,
        body_optional=data is not None and (data.is_optional or data.has_default),
        query=None
        if opt.get("any_query")
        else frozenset(query) | opt.get("query_names", frozenset()),
        lists=frozenset(lists) | opt.get("query_names", frozenset()),
        deprecated=opt.get("deprecated"),
        takes_file=bool(opt.get("takes_file")),
        straight=straight_to(handler, route, gifts),
    )
