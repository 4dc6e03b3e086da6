"""A request as it arrived: the bytes that were signed, from whom, for which host; and its JSON body, read strictly.

Types are exact.
"""

import codecs
import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import IO, Any, NamedTuple
from urllib.parse import parse_qs
from uuid import UUID

import msgspec
from litestar.types import HTTPScope, Receive

from billfold.http.caller import Call
from billfold.http.json_syntax import CONTROL, check_json, has_control, malformed
from billfold.http.schemas import CheckedBody
from billfold.http.validation_errors import days_out_of_range, field_errors, has_dates, mistakes_in
from billfold.platform.addresses import network_of, without_port
from billfold.platform.clock import monotonic
from billfold.platform.dates import require_aware
from billfold.platform.errors import BillfoldError, FieldError, InvalidInput
from billfold.platform.file_kinds import FileKind, max_file_bytes

BARE = frozenset({"localhost", "127.0.0.1", "[::1]"})
BODY_BYTES_MAX = 1024 * 1024
FORM_FRAME_BYTES_MAX = 64 * 1024
"""How much of a form with a file may be something else than the file."""
PARAMETERS_MAX = 200
"""How many parameters a query may have, repeated ones too."""
_RAW_REQUEST = "raw_request"
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)


KEY_HEADER = "x-service-idempotency"
SIGNATURE_HEADER = "x-service-signature"
"""Headers of a signed request of a partner."""


class Requester(NamedTuple):
    """Whose token a request carries: the tenant in whose log it is kept, and who of it."""

    tenant_id: UUID
    client_id: str | None = None
    member_id: UUID | None = None
    user_id: UUID | None = None
    """The user of a partner."""


class RawRequest:
    """What is known of one request from its first byte to its last."""

    __slots__ = (
        "_query_values",
        "began_at",
        "body",
        "caller",
        "client",
        "data",
        "headers",
        "host",
        "is_head",
        "method",
        "path",
        "path_params",
        "query",
        "requester",
        "trace_id",
        "values",
    )

    def __init__(self, scope: HTTPScope, trace_id: str, client: str) -> None:
        self.began_at = monotonic()
        self.trace_id = trace_id
        self.client = client
        """The address of who called, behind trusted proxies."""
        self.method: str = scope["method"]
        self.is_head = self.method == "HEAD"
        self.path: str = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        """The path as sent, still escaped."""
        self.query = scope["query_string"]
        self.path_params: Mapping[str, str] = {}
        self.headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            # Two of a kind would be read by one part of the way and signed by another.
            self.headers[name] = b",".join((*filter(None, [self.headers.get(name)]), value))
        self.host = self.headers.get(b"host", b"").decode("latin-1").lower()
        self.body = b""
        self.data: Any = None
        """The body as the operation declares it."""
        self.values: Mapping[str, Any] | None = None
        """The fields of a body that was never sent as JSON, by name."""
        self.caller: Call | None = None
        self.requester: Requester | None = None
        """Whose token it carries, proven or not."""
        self._query_values: Mapping[str, Sequence[str]] | None = None

    def header(self, name: bytes) -> str | None:
        """Return a header by its lower-case name, as text, or None."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip()

    def refuse_preview(self) -> None:
        """Raise InvalidInput for a request that prefers a preview (RFC 7240) where it would be carried out."""
        preferred = (self.header(b"prefer") or "").lower().split(",")
        if any(each.partition(";")[0].strip() == "preview" for each in preferred):
            raise InvalidInput.at(
                "header",
                "prefer",
                msg="preview is not offered here. Send a transfer to /api/v1/transfer-requests/preview/ instead",
                kind="value_error",
            )

    @property
    def query_values(self) -> Mapping[str, Sequence[str]]:
        """The parameters of the query by name, in the order they were sent. Raises InvalidInput for too many."""
        if self._query_values is None:
            text = self.query.decode("latin-1")
            try:
                self._query_values = parse_qs(text, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
            except ValueError:
                raise InvalidInput.at("query", msg=f"may hold at most {PARAMETERS_MAX} parameters") from None
        return self._query_values

    @query_values.setter
    def query_values(self, values: Mapping[str, Sequence[str]]) -> None:
        """Set the parameters of a request made in this process, which has no query to read."""
        self._query_values = values

    def check_query(self, known: Mapping[str, bool]) -> None:
        """Raise InvalidInput for names that are not `known`; True ones may be repeated."""
        sent = self.query_values
        wrong = [
            FieldError(("query", CONTROL.sub("", name)), "may not hold control characters", "value_error")
            for name, values in sorted(sent.items())
            if has_control(name) or any(map(has_control, values))
        ]
        wrong += [
            FieldError(("query", name), "is not a parameter of this operation", "extra_forbidden")
            for name in sorted(sent.keys() - known.keys())
            if not has_control(name)
        ]
        wrong += [
            FieldError(("query", name), "may be there only once", "value_error")
            for name, many in sorted(known.items())
            if not many and len(sent.get(name, ())) > 1
        ]
        if wrong:
            raise InvalidInput(wrong)

    def check_encoding(self) -> None:
        """Raise `unsupported-media-type` when there is a body and it is encoded."""
        if self.body and (self.header(b"content-encoding") or "identity").lower() != "identity":
            raise BillfoldError("unsupported-media-type", "Send the body as it is: no content-encoding is taken.")

    def check_content_type(self) -> None:
        """Raise `unsupported-media-type` when the body says that it is not JSON."""
        sent = self.header(b"content-type")
        if sent is not None and not _JSON_TYPE.fullmatch(sent):
            raise BillfoldError("unsupported-media-type", "Send the body as application/json.")


def attach(scope: HTTPScope, request: RawRequest) -> None:
    """Make a request known to whoever handles it later."""
    scope.setdefault("state", {})[_RAW_REQUEST] = request


def raw_request_of(scope: Any) -> RawRequest:  # noqa: ANN401 - any scope of the framework
    """Return the request that came through the edge."""
    found: RawRequest = scope["state"][_RAW_REQUEST]
    return found


def find_raw_request(scope: Any) -> RawRequest | None:  # noqa: ANN401 - any scope of the framework
    """Return the request if it came as far as the edge."""
    found: RawRequest | None = scope.get("state", {}).get(_RAW_REQUEST)
    return found


async def read_body(request: RawRequest, receive: Receive, limit: int = BODY_BYTES_MAX) -> bytes:
    """Return the whole body. Raises `payload-too-large` before more than `limit` is in memory."""
    parts = [part async for part in body_parts(request, receive, limit)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


@asynccontextmanager
async def receive_file(request: RawRequest, receive: Receive, document_type: str | None) -> AsyncIterator[IO[bytes]]:
    """Receive the file of a document of this type, or a form with it, on the disk. Raises as `read_body`.

    A file of another type is not read: the operation refuses it, after whoever may not send one.
    """
    with tempfile.TemporaryFile() as received:
        is_form = is_file_form(request)
        if is_form or is_file_kind(request):
            kinds = FileKind if is_form else (kind_in(request),)
            most = max(max_file_bytes(each, document_type) for each in kinds)
            async for part in body_parts(request, receive, most + (FORM_FRAME_BYTES_MAX if is_form else 0)):
                received.write(part)
            received.seek(0)
        yield received


async def body_parts(request: RawRequest, receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """Yield the body as it comes. Raises `payload-too-large` when it is larger than `limit`."""
    declared = request.headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    size = 0
    more = True
    while more:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise BillfoldError("bad-request", "The connection ended before the body did.")
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise too_large(limit)
        more = message.get("more_body", False)
        yield part


def is_file_form(request: RawRequest) -> bool:
    """Tell whether a body is declared to be a form with files."""
    return _declared_type(request) == "multipart/form-data"


def is_file_kind(request: RawRequest) -> bool:
    """Tell whether an upload is declared to be of a type that is taken."""
    return _declared_type(request) in set(FileKind)


def kind_in(request: RawRequest) -> FileKind:
    """Return what an upload is declared to be. Raises `unsupported-media-type`."""
    try:
        return FileKind(_declared_type(request))
    except ValueError:
        raise BillfoldError("unsupported-media-type", f"Send a file as one of {', '.join(FileKind)}.") from None


def _declared_type(request: RawRequest) -> str:
    return (request.header(b"content-type") or "").partition(";")[0].strip().lower()


def too_large(limit: int) -> BillfoldError:
    """Return the refusal of a body of more than `limit` bytes."""
    return BillfoldError("payload-too-large", f"The body may have at most {limit:,} bytes.")


def name_of(host: str) -> str:
    """Return a host without its port: `[::1]:8443` is `[::1]`."""
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


def slug_of(host: str, domain: str) -> str | None:
    """Return the partner's label of `{slug}.{domain}`, or None when there is none."""
    name = name_of(host).removesuffix(".")
    suffix = f".{domain}"
    if not name.endswith(suffix):
        return None
    slug = name.removesuffix(suffix)
    return slug if slug and "." not in slug else None


def is_bare(host: str) -> bool:
    """Tell whether a host is this machine and no partner's name."""
    return name_of(host) in BARE


@lru_cache(4096)
def is_trusted(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Tell whether an address belongs to a proxy whose forwarded headers are believed."""
    try:
        # A socket of both families shows an IPv4 proxy as ::ffff:10.0.0.1.
        parsed = ip_address(network_of(address)) if "." in address else ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


def client_of(peer: str, forwarded_for: str | None, networks: Sequence[IPv4Network | IPv6Network]) -> str:
    """Return who called: the last address on the way that is not a trusted proxy's."""
    if forwarded_for is None or not is_trusted(peer, networks):
        return peer
    for address in reversed([without_port(each.strip()) for each in forwarded_for.split(",")]):
        if not is_trusted(address, networks):
            return address
    return peer


def is_uuid(text: str) -> bool:
    """Tell whether a text is the canonical form of a UUID, in either case."""
    return _UUID.fullmatch(text) is not None


@contextmanager
def in_body() -> Iterator[None]:
    """Prefix the place of mistakes with `body`."""
    try:
        yield
    except InvalidInput as wrong:
        raise InvalidInput(FieldError(("body", *each.loc), each.msg, each.type) for each in wrong.errors) from None


def instant_in_body(name: str, at: datetime) -> datetime:
    """Return a time that a body names, in UTC. Raises InvalidInput at body.`name`."""
    try:
        return require_aware(at).astimezone(UTC)
    except ValueError:
        raise InvalidInput.at("body", name, msg="needs an offset, such as Z or -04:00") from None


def decode(body: bytes, declared: Any) -> Any:  # noqa: ANN401 - whatever the operation declares
    """Return a body as its declared type. Raises `malformed-json` or InvalidInput at `body`."""
    body = body.removeprefix(codecs.BOM_UTF8)
    check_json(body)
    try:
        decoded = msgspec.json.decode(body, type=declared)
    except msgspec.ValidationError:
        raise InvalidInput(mistakes_in(json.loads(body), declared)) from None
    except msgspec.DecodeError as error:
        raise malformed(str(error)) from None
    if has_dates(declared):
        _check_days(json.loads(body), declared)
    return _checked(decoded)


def convert(values: Mapping[str, Any], declared: Any) -> Any:  # noqa: ANN401 - whatever the operation declares
    """Return a body whose fields are known by name as its declared type. Raises InvalidInput at `body`."""
    body = msgspec.to_builtins(values)
    try:
        converted = msgspec.convert(body, declared)
    except msgspec.ValidationError:
        raise InvalidInput(mistakes_in(body, declared)) from None
    if has_dates(declared):
        _check_days(body, declared)
    return _checked(converted)


def _check_days(body: Any, declared: Any) -> None:  # noqa: ANN401 - as above
    if wrong := days_out_of_range(body, declared):
        raise InvalidInput(wrong)


def _checked(body: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(body, CheckedBody) and (wrong := list(field_errors(body))):
        raise InvalidInput(wrong)
    return body


def missing_body() -> InvalidInput:
    """Return the refusal of a request that should have a body."""
    return InvalidInput.at("body", msg="a JSON body is required", kind="missing")


def parse_cookies(request: RawRequest) -> dict[str, str]:
    """Return the cookies of a request: the first of a name counts, being the most specific."""
    found: dict[str, str] = {}
    for part in (request.header(b"cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        found.setdefault(name, value)
    return found
