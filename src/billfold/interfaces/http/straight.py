"""Operations that need nothing of the framework any more are called straight from the door.

Litestar finds the operation, and calls those that read the query, have a dependency of their own,
or make their response themselves. For the others all is said when the door has let a request in:
who asks, the body as declared, the names in the path. To pass through the framework once more would
take a tenth of what a payment costs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from litestar import Response
from litestar.enums import MediaType
from litestar.serialization import encode_json

from billfold.interfaces.http.answers import JSON, Answer
from billfold.interfaces.http.arrivals import Arrival

if TYPE_CHECKING:
    from litestar import Litestar
    from litestar.handlers import HTTPRouteHandler
    from litestar.routes import HTTPRoute

Give = Callable[[Arrival], Any]
"""What a parameter of a route function is, for one request."""

_WHO_ASKS = frozenset({"caller", "member"})
_NO_BODY = 204


class Straight:
    """A route function and what it is called with."""

    __slots__ = ("_fn", "_given", "_path", "_status")

    def __init__(
        self,
        fn: Callable[..., Awaitable[Any]],
        status: int,
        given: Mapping[str, Give],
        path: tuple[str, ...],
    ) -> None:
        self._fn = fn
        self._status = status
        self._given = tuple(given.items())
        self._path = path

    async def answer(self, arrival: Arrival, path_params: Mapping[str, Any]) -> Answer:
        """Return what it answers. Raises what it raises."""
        arguments = {name: give(arrival) for name, give in self._given}
        for name in self._path:
            arguments[name] = path_params[name]
        return Answer(self._status, JSON, encode_json(await self._fn(**arguments)))


def gifts_of(app: Litestar) -> dict[str, Give]:
    """Return what route functions of an application may ask for by name, and the body."""
    gifts: dict[str, Give] = {"data": lambda arrival: arrival.decoded}
    for name, provide in app.dependencies.items():
        found: Any = getattr(provide, "dependency", provide)
        if name in _WHO_ASKS:
            gifts[name] = lambda arrival: arrival.caller
        elif not signature(found).parameters:
            gifts[name] = _same_for_all(found)
    return gifts


def _same_for_all(found: Callable[[], Any]) -> Give:
    return lambda _: found()


def straight_to(
    handler: HTTPRouteHandler, route: HTTPRoute, gifts: Mapping[str, Give]
) -> Straight | None:
    """Return how to call an operation straight, or None when it needs the framework."""
    parameters = handler.parsed_fn_signature.parameters
    path = tuple(name for name in parameters if name in route.path_parameters)
    given = {name: gifts[name] for name in parameters if name in gifts}
    data, told = parameters.get("data"), handler.parsed_fn_signature.return_type
    if (
        len(given) + len(path) < len(parameters)
        or any(parameters[name].annotation is not str for name in path)
        or (data is not None and (data.is_optional or data.has_default))
        or told.annotation in {None, type(None), Any}
        or told.is_subclass_of(Response)
        or _needs_framework(handler)
    ):
        return None
    return Straight(handler.fn, handler.status_code, given, path)


def _needs_framework(handler: HTTPRouteHandler) -> bool:
    return (
        handler.has_sync_callable
        or handler.status_code == _NO_BODY
        or handler.media_type not in {MediaType.JSON, ""}
        or bool(handler.resolve_guards())
    )
