"""The table of operations: each row gives the path of an operation, its access, and its parameters.

@get("/api/v2/pockets/{pocket_id}/")                      # the Partner API, signed
@post("/api/v2/pockets/", with_scope("pockets.write", "pockets"), refuses=("customer-not-open",))

A function with two accesses is offered by both APIs; one whose paths, problems or bodies differ
is declared twice, one decorator above the other. Its parameters are filled by name and type:
`caller` or `member`, `data` (the body, a struct), names of the path, a struct of query parameters
or single ones (they have defaults), `request: RawRequest`; any other name is a service of the API.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cached_property, partial
from types import UnionType
from typing import Any, Final, Literal, NamedTuple, TypedDict, Unpack
from uuid import UUID

import msgspec

from billfold.http.caller import AS_OF, call_as_of
from billfold.http.parameters import Parameter, QueryParams, check_ranges, parameter_of, range_pairs
from billfold.http.raw_request import RawRequest, convert, decode, missing_body, parse_uuid
from billfold.http.responses import HttpResponse, StreamedResponse
from billfold.platform.errors import InvalidInput

Handler = Callable[..., Awaitable[Any]]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Document = dict[str, Any]
Value = Callable[[RawRequest, Mapping[str, Any]], Any]
"""The value of a handler's parameter, from the request and the services of the API."""
MaybeInPath = UUID | None
"""The type of a parameter that only one of a function's paths names; for the others it is None."""
PREVIEW_PATH: Final = "/preview/"
"""The path suffix of operations that only preview."""
_IDS: Final = (UUID, MaybeInPath)
_USUAL_STATUS: Final = {"POST": 201, "DELETE": 204}
_GIVEN: Final[Mapping[str, Value]] = {
    "caller": lambda request, _: request.caller,
    "member": lambda request, _: request.caller,
    "data": lambda request, _: request.data,
}
_COMPLETE: Final = (HttpResponse, StreamedResponse)


MAY_NEED_APPROVAL: Final[Mapping[str, Any]] = {
    "responses": {
        "202": {
            "description": "An approval rule of the team applies: nothing changes before another member approves.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/AuthorizationRequest"}}},
        }
    }
}
"""The responses, in addition to its own, of an operation that may require an approval."""


class Proof(StrEnum):
    """The proof of its sender that a request must carry."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 - a kind, not a secret
    """A bearer token; key and signature are checked when present (operations of the sandbox)."""
    TOKEN_AND_KEY = "token-and-key"  # noqa: S105 - as above
    """A token and an idempotency key, no signature: uploads of the Partner API."""
    SIGNATURE = "signature"
    """Token, idempotency key and signature."""
    OAUTH = "oauth"
    """An access token of the Customer API with a scope."""


RATES_PER_MINUTE: Final[Mapping[str, int]] = {
    "agreements": 300,
    "approvals": 300,
    "counterparties": 300,
    "customer": 300,
    "disputes": 300,
    "documents": 300,
    "earnings": 300,
    "events": 300,
    "holds": 300,
    "notifications": 300,
    "onboarding": 300,
    "pockets": 120,
    "portals": 300,
    "reports": 300,
    "statements": 300,
    "subscriptions": 300,
    "team": 300,
    "trades": 120,
    "trading-strategies": 300,
    "transactions": 120,
    "transfer-request-creations": 60,
    "transfer-requests": 120,
    "user": 300,
    "wires": 300,
}
"""Rate limits by group of operations: requests per minute of one client for one user."""


@dataclass(frozen=True, slots=True)
class Access:
    """Access to an operation through one API.

    An OAuth token needs the `scope`; the role of its user must include what the operation `needs`.
    """

    proof: Proof
    scope: str = ""
    needs: str = ""
    also: str = ""
    """Another scope, which the role must also include, that opens it for a part of its function."""
    group: str | None = None
    """The group of `RATES_PER_MINUTE` it is counted with."""
    per_address: bool = False
    """Counted by the client's address, before its body is read."""


OPEN = Access(Proof.NONE)
PER_ADDRESS = Access(Proof.NONE, per_address=True)
TOKEN = Access(Proof.TOKEN)
TOKEN_AND_KEY = Access(Proof.TOKEN_AND_KEY)
SIGNED = Access(Proof.SIGNATURE)


def with_scope(scope: str, group: str, *, needs: str | None = None, also: str = "") -> Access:
    """Return the access of the Customer API: a scope, or `also` another, and the group it is counted with."""
    return Access(Proof.OAUTH, scope, needs or scope, also=also, group=group)


class Deprecation(NamedTuple):
    """The date since which an operation is deprecated, and the date from which it may be removed."""

    since: date
    sunset: date


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: Method
    path: str
    handler: Handler
    access: tuple[Access, ...]
    name: str
    """The operationId."""
    tag: str
    status: int
    refuses: tuple[str, ...] = ()
    """Its possible problems, besides those of every operation."""
    moves_money: bool = False
    """Counts towards the limit of requests that move money, too."""
    previews: bool = False
    """Writes nothing but one command: what that does can be shown instead."""
    deprecated: Deprecation | None = None
    hidden: bool = False
    """Not in the OpenAPI document."""
    any_query: bool = False
    """Query parameters that are not declared are ignored."""
    as_of: bool = False
    """A read that also answers what it answered at an earlier instant, by the rights of now."""
    takes_file: bool = False
    takes: Any = None
    """The type of the body, where it is narrower than what the function accepts."""
    documented: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the OpenAPI operation that the signature cannot express."""
    also: Operation | None = None
    """Return the same function as it is offered elsewhere."""

    @property
    def changes(self) -> bool:
        """Return whether the operation changes something."""
        return self.method != "GET"

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The types of the handler's parameters, and of what it returns."""
        return typing.get_type_hints(self.handler, include_extras=True)

    @cached_property
    def body(self) -> Any:  # noqa: ANN401 - any type
        """The type of the JSON body, or None."""
        hint = self.takes or self.hints.get("data")
        return typing.get_args(hint)[0] if self.is_body_optional else hint

    @cached_property
    def is_body_optional(self) -> bool:
        """Return whether the operation may be called without its JSON body."""
        return type(None) in typing.get_args(self.hints.get("data"))

    @cached_property
    def returns(self) -> Any:  # noqa: ANN401 - any type
        """The type of the JSON it returns; None for no body, Any for one that is not JSON."""
        hint = self.hints["return"]
        if typing.get_origin(hint) in {UnionType, typing.Union}:
            kinds = [each for each in typing.get_args(hint) if each not in _COMPLETE]
            hint = typing.Union[tuple(kinds)]  # noqa: UP007 - of a list
        return Any if hint in _COMPLETE else None if hint is type(None) else hint

    @cached_property
    def query_sources(self) -> dict[str, Parameter | QueryParams]:
        """Return the parameters of the handler that come from the query."""
        found: dict[str, Parameter | QueryParams] = {}
        for name, each in inspect.signature(self.handler).parameters.items():
            hint = self.hints[name]
            if name in _GIVEN or name in self.path_names:
                continue
            if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
                found[name] = QueryParams(hint)
            elif each.default is not inspect.Parameter.empty:
                found[name] = parameter_of(name, hint, each.default)
        return found

    @cached_property
    def query(self) -> list[Parameter]:
        """Every query parameter."""
        return [each for source in self.query_sources.values() for each in source.fields] + [AS_OF] * self.as_of

    @cached_property
    def _ranges(self) -> list[tuple[Parameter, Parameter]]:
        return range_pairs(self.query)

    @cached_property
    def route(self) -> str:
        """The path without a slash at its end, as operators see it."""
        return f"/{self.path.strip('/')}"

    @cached_property
    def path_names(self) -> list[str]:
        """The names in the path, in its order."""
        return re.findall(r"{(\w+)}", self.path)

    def access_by(self, proofs: frozenset[Proof]) -> Access | None:
        """Return its access through an API with these proofs, or None if that API does not offer it."""
        return next((each for each in self.access if each.proof in proofs), None)

    @cached_property
    def _values(self) -> tuple[tuple[str, Value], ...]:
        names = inspect.signature(self.handler).parameters
        return tuple((name, self._value(name)) for name in names)

    def _value(self, name: str) -> Value:
        hint, source = self.hints[name], self.query_sources.get(name)
        if (given := _GIVEN.get(name)) is not None:
            return given
        if source is not None:
            usual = source.read({})
            return lambda request, _: source.read(request.query_values) if request.query_values else usual
        if name in self.path_names:
            if hint in _IDS:
                return lambda request, _: parse_uuid("path", name, request.path_params[name])
            return lambda request, _: request.path_params[name]
        missing = {name: None} if hint in _IDS else {}
        return lambda request, services: request if hint is RawRequest else (missing or services)[name]

    def read(self, request: RawRequest) -> None:
        """Check the names of the query and decode the body. Raises InvalidInput and its kin."""
        request.check_encoding()
        if self.changes and not self.previews and not self.path.endswith(PREVIEW_PATH):
            request.refuse_preview()
        if request.query_values and not self.any_query:
            request.check_query(
                {name: each.many for each in self.query for name in each.names_in(request.query_values)}
            )
        if self.body is None:
            return
        if request.values is not None:
            request.data = convert(request.values, self.body)
        else:
            if not request.body:
                if self.is_body_optional:
                    return
                raise missing_body()
            request.check_content_type()
            request.data = decode(request.body, self.body)
        if self.method == "PATCH" and _is_empty(request.data):
            raise InvalidInput.at("body", msg="names nothing to change")

    async def call(self, request: RawRequest, services: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any type
        """Call the handler and return what it returns. Raises what it raises."""
        if self.as_of and request.query_values:
            request.caller = call_as_of(request.caller, request.query_values, services["bank"].calendars)
        arguments = {name: value(request, services) for name, value in self._values}
        if request.query_values:
            check_ranges(self._ranges, request.query_values)
        return await self.handler(**arguments)


def _is_empty(data: msgspec.Struct) -> bool:
    """Tell whether every field of a body has its default."""
    return all(not each.required and getattr(data, each.name) == each.default for each in msgspec.structs.fields(data))


class Options(TypedDict, total=False):
    """Options of an operation; omitted ones have their defaults."""

    name: str
    """Its operationId; the default is the name of the function."""
    tag: str
    """Groups operations; the default is its module, or the folder of a module `routes`."""
    status: int
    refuses: tuple[str, ...]
    moves_money: bool
    previews: bool
    deprecated: Deprecation
    hidden: bool
    any_query: bool
    as_of: bool
    takes_file: bool
    takes: Any
    documented: Mapping[str, Any]


Declare = Callable[[Handler | Operation], Operation]


def operation(method: Method, path: str, *access: Access, **options: Unpack[Options]) -> Declare:
    """Declare an operation. Without an access it belongs to the Partner API, and is signed."""

    def declare(declared: Handler | Operation) -> Operation:
        also = declared if isinstance(declared, Operation) else None
        handler: Handler = declared.handler if isinstance(declared, Operation) else declared
        usual: Options = {
            "name": handler.__name__,
            "tag": _tag_of(handler.__module__),
            "status": _USUAL_STATUS.get(method, 200),
        }
        given = usual | options
        if given.get("as_of"):
            given["refuses"] = (*given.get("refuses", ()), "history-not-kept")
        return Operation(method=method, path=path, handler=handler, access=access or (SIGNED,), also=also, **given)

    return declare


def _tag_of(module: str) -> str:
    """Return the name of a module, or of its folder when it is the `routes` of one part."""
    *_, folder, name = module.split(".")
    is_whole = name in {"routes", "v1_routes", "partner_routes", "customer_routes"}
    return (folder if is_whole else name.removesuffix("_routes")).replace("_", "-")


get = partial(operation, "GET")
post = partial(operation, "POST")
put = partial(operation, "PUT")
patch = partial(operation, "PATCH")
delete = partial(operation, "DELETE")


def operations_in(package: str) -> list[Operation]:
    """Return the operations that the modules of a package declare; packages inside it are separate."""
    here = importlib.import_module(package)
    return _declared(each.name for each in pkgutil.iter_modules(here.__path__, f"{package}."))


def operations_of_parts() -> list[Operation]:
    """Return the operations of all parts of the bank: those of modules named `*routes`.

    Those of the sandbox are separate: production does not import them.
    """
    here = importlib.import_module("billfold")
    parts = [
        f"billfold.{part.name}" for part in pkgutil.iter_modules(here.__path__) if part.ispkg and part.name != "sandbox"
    ]
    return [each for part in parts for each in operations_below(part)]


def operations_below(package: str) -> list[Operation]:
    """Return the operations of modules named `*routes`, or in a folder `routes`, at any depth."""
    here = importlib.import_module(package)
    names = [each.name for each in pkgutil.walk_packages(here.__path__, f"{package}.")]
    return _declared(each for each in names if each.endswith("routes") or ".routes." in each)


def _declared(modules: Iterable[str]) -> list[Operation]:
    found = [
        each
        for name in modules
        for each in vars(importlib.import_module(name)).values()
        if isinstance(each, Operation) and each.handler.__module__ == name
    ]
    # The list grows while it is read, by other declarations of the same function.
    found.extend(each.also for each in found if each.also is not None)
    return found
