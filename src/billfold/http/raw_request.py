"""A request as it arrived: the bytes that were signed, from whom, for which host."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from billfold.documents import rules as document_rules
from billfold.documents.ports import FileKind
from billfold.http.caller import Call
from billfold.platform.errors import BillfoldError, FieldError, InvalidInput

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Receive

BARE = frozenset({"localhost", "127.0.0.1", "[::1]"})
BODY_BYTES_MAX = 1024 * 1024
FILE_SECONDS = 120
_RAW_REQUEST = "raw_request"
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)


class RawRequest:
    """What is known of one request from its first byte to its last."""

    __slots__ = (
        "_query_values",
        "body",
        "caller",
        "client",
        "data",
        "headers",
        "host",
        "method",
        "path",
        "path_params",
        "query",
        "trace_id",
    )

    def __init__(self, scope: HTTPScope, trace_id: str, client: str) -> None:
        self.trace_id = trace_id
        self.client = client
        """The address of who called, behind trusted proxies."""
        self.method: str = scope["method"]
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
        self.caller: Call | None = None
        self._query_values: dict[str, list[str]] | None = None

    def header(self, name: bytes) -> str | None:
        """Return a header by its lower-case name, as text, or None."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip()

    @property
    def query_values(self) -> Mapping[str, Sequence[str]]:
        """The parameters of the query by name, in the order they were sent."""
        if self._query_values is None:
            text = self.query.decode("latin-1")
            self._query_values = parse_qs(text, keep_blank_values=True) if text else {}
        return self._query_values

    def check_query(self, known: Mapping[str, bool]) -> None:
        """Raise InvalidInput for names that are not `known`; True ones may be repeated."""
        sent = self.query_values
        wrong = [
            FieldError(("query", name), "is not a parameter of this operation", "extra_forbidden")
            for name in sorted(sent.keys() - known.keys())
        ]
        wrong += [
            FieldError(("query", name), "may be there only once", "value_error")
            for name, many in sorted(known.items())
            if not many and len(sent.get(name, ())) > 1
        ]
        if wrong:
            raise InvalidInput(wrong)

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


async def read_body(request: RawRequest, receive: Receive, limit: int = BODY_BYTES_MAX) -> bytes:
    """Return the whole body. Raises `payload-too-large` before more than `limit` is in memory."""
    declared = request.headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise BillfoldError("bad-request", "The connection ended before the body did.")
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_file(request: RawRequest, receive: Receive) -> bytes:
    """Return the file that is the body. Raises `unsupported-media-type` before it is read.

    Raises as `read_body` besides, and `bad-request` when it takes too long.
    """
    limit = document_rules.max_file_bytes(kind_in(request))
    try:
        async with asyncio.timeout(FILE_SECONDS):
            return await read_body(request, receive, limit)
    except TimeoutError:
        raise BillfoldError("bad-request", f"The file took longer than {FILE_SECONDS} seconds.") from None


def kind_in(request: RawRequest) -> FileKind:
    """Return what an upload is declared to be. Raises `unsupported-media-type`."""
    declared = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    try:
        return FileKind(declared)
    except ValueError:
        raise BillfoldError("unsupported-media-type", f"Send a file as one of {', '.join(FileKind)}.") from None


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
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


def client_of(peer: str, forwarded_for: str | None, networks: Sequence[IPv4Network | IPv6Network]) -> str:
    """Return who called: the last address on the way that is not a trusted proxy's."""
    if forwarded_for is None or not is_trusted(peer, networks):
        return peer
    for address in reversed([each.strip() for each in forwarded_for.split(",")]):
        if not is_trusted(address, networks):
            return address
    return peer


def is_uuid(text: str) -> bool:
    """Tell whether a text is the canonical form of a UUID, in either case."""
    return _UUID.fullmatch(text) is not None
