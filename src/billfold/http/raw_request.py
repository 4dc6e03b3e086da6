"""A request as it arrived: the signed bytes, the sender, the host; and its JSON body, read strictly.

JSON is UTF-8 without repeated names, control characters, deep nesting or endless lists; types are exact.
"""

import codecs
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, NamedTuple
from urllib.parse import parse_qs
from uuid import UUID

import msgspec

from billfold.http.schemas import CheckedBody, days_out_of_range, field_errors, has_dates, mistakes_in
from billfold.platform.clock import monotonic
from billfold.platform.crypto import is_sealed_text
from billfold.platform.dates import require_aware
from billfold.platform.errors import BillfoldError, FieldError, InvalidInput

DEPTH_MAX = 32
ITEMS_MAX = 1000
# Possessive, and closed by the end too: each byte is examined once.
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
"""Characters that a database or XML cannot hold, that control terminals, or that reorder displayed text."""
_NOT_IN_NAMES = re.compile("[\t\n\r\u061c\u200e\u200f\u2028\u2029]")
"""Characters that end the line of a name or an address, or change its direction. Other texts may have them."""
_HALF = re.compile("[\ud800-\udfff]")  # of a UTF-16 pair, which is not a character
_MAYBE_WRONG = re.compile(
    rb"\\[bfnrt]|\\u[dD][89a-fA-F]|\\u00[0189]|\\u007[fF]|\\u20[026]|\\u061[cC]|\\u[fF]{3}[eEfF]"
    rb"|\"sealed:|\\u00[2-7]|\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbf[\xbe\xbf]"
)


def has_control(text: str) -> bool:
    """Tell whether a text has a character that neither a database nor XML can hold."""
    return CONTROL.search(text) is not None


class _NotJson(ValueError):
    """JSON that Python would accept although it is invalid."""


def check_json(body: bytes) -> None:
    """Raise `malformed-json` unless these bytes are JSON that can be read in only one way.

    Every step takes time proportional to the length of the body, whatever it contains.
    """
    # Before it is decoded: how deep a decoder can go depends on other code that raised the recursion limit.
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX and _depth(body) > DEPTH_MAX:
        raise malformed(f"It nests deeper than {DEPTH_MAX} levels.")
    try:
        decoded = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError:
        raise malformed("It is not UTF-8.") from None
    except (json.JSONDecodeError, _NotJson) as error:
        raise malformed(str(error).replace("\n", " ")) from None
    except ValueError:
        raise malformed("A number in it has thousands of digits.") from None
    if body.count(b",") >= ITEMS_MAX:
        _check_size(decoded, ())
    if _MAYBE_WRONG.search(body):
        check_texts(decoded)


def _depth(body: bytes) -> int:
    brackets = _STRING.sub(b"", body).translate(None, delete=_NOT_BRACKETS)
    return max(accumulate(1 if each in b"[{" else -1 for each in brackets), default=0)


def _check_size(value: object, place: tuple[str | int, ...]) -> None:
    if not isinstance(value, list | dict):
        return
    if len(value) > ITEMS_MAX:
        raise InvalidInput.at("body", *place, msg=f"may have at most {ITEMS_MAX} items", kind="too_long")
    for step, each in enumerate(value) if isinstance(value, list) else value.items():
        _check_size(each, (*place, step))


def check_texts(decoded: object) -> None:
    """Raise InvalidInput at `body` for texts that a database cannot hold, or that are mistaken for others."""
    texts = list(texts_in(decoded, ()))
    if any(_HALF.search(text) for _, text in texts):
        raise malformed("A text in it has half of a surrogate pair.")
    wrong = [
        FieldError(("body", *place), "may not hold control characters", "value_error")
        for place, text in texts
        if has_control(text) or (_NOT_IN_NAMES.search(text) and _is_name(place))
    ]
    # Where stored texts are opened, a text from a client must not be mistaken for one that the bank encrypted.
    wrong += [
        FieldError(("body", *place), "may not look like an encrypted value", "value_error")
        for place, text in texts
        if is_sealed_text(text)
    ]
    if wrong:
        raise InvalidInput(wrong)


def _is_name(place: tuple[str | int, ...]) -> bool:
    return any(str(step).endswith(("name", "address", "name_on_card")) for step in place)


def texts_in(value: object, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text with its path; the name of a field belongs to the object it is in."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from texts_in(each, (*place, index))
    elif isinstance(value, dict):
        for name, each in value.items():
            yield place, name
            yield from texts_in(each, (*place, name))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _NotJson("An object repeats a name.")
    return found


def _refuse(constant: str) -> None:
    raise _NotJson(f"{constant} is not JSON.")


def malformed(why: str) -> BillfoldError:
    """Return the error for bytes that are not valid JSON."""
    return BillfoldError("malformed-json", f"The body is not valid JSON. {why}")


Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
BODY_BYTES_MAX = 1024 * 1024
PARAMETERS_MAX = 200
"""Maximum number of query parameters, repeated ones included."""
RAW_REQUEST = "raw_request"
"""Where the state of a scope has the request that came through the edge."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_JSON_TYPE = re.compile(r"application/json\s*(;.*)?", re.IGNORECASE)


KEY_HEADER = "x-service-idempotency"
SIGNATURE_HEADER = "x-service-signature"
"""Headers of a signed request of a partner."""


class Requester(NamedTuple):
    """The owner of a request's token: the tenant whose log keeps the request, and the client or user."""

    tenant_id: UUID
    client_id: str | None = None
    member_id: UUID | None = None
    user_id: UUID | None = None
    """The user of a partner."""


class RawRequest:
    """A request and what is known of it from its first byte to its last."""

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

    def __init__(self, scope: Scope, trace_id: str, client: str) -> None:
        self.began_at = monotonic()
        self.trace_id = trace_id
        self.client = client
        """The caller's IP address, behind trusted proxies."""
        self.method: str = scope["method"]
        self.is_head = self.method == "HEAD"
        self.path: str = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        """The path as sent, still escaped."""
        self.query = scope["query_string"]
        self.path_params: Mapping[str, str] = {}
        self.headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            # With a repeated header, one hop could read one copy while another signs the other.
            self.headers[name] = b",".join((*filter(None, [self.headers.get(name)]), value))
        self.host = self.headers.get(b"host", b"").decode("latin-1").lower()
        self.body = b""
        self.data: Any = None
        """The body as the operation declares it."""
        self.values: Mapping[str, Any] | None = None
        """The fields of a body that was never sent as JSON, by name."""
        self.caller: Any = None  # a Call, whose module imports this one
        self.requester: Requester | None = None
        """The owner of the token that it carries, proven or not."""
        self._query_values: Mapping[str, Sequence[str]] | None = None

    def header(self, name: bytes) -> str | None:
        """Return a header by its lower-case name, as text, or None."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip()

    @property
    def prefers_preview(self) -> bool:
        """Tell whether the request prefers a preview (RFC 7240)."""
        preferred = (self.header(b"prefer") or "").lower().split(",")
        return any(each.partition(";")[0].strip() == "preview" for each in preferred)

    def refuse_preview(self) -> None:
        """Raise InvalidInput for a request that prefers a preview, or names one, where it would just be carried out."""
        if self.prefers_preview or b"preview-id" in self.headers:
            detail = "preview is not offered here. Transfer requests and batches are sent to .../preview/ instead"
            raise InvalidInput.at("header", "prefer" if self.prefers_preview else "preview-id", msg=detail)

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
            FieldError(("query", name), "may occur only once", "value_error")
            for name, many in sorted(known.items())
            if not many and len(sent.get(name, ())) > 1
        ]
        if wrong:
            raise InvalidInput(wrong)

    def check_encoding(self) -> None:
        """Raise `unsupported-media-type` when there is a body and it is encoded."""
        if self.body and (self.header(b"content-encoding") or "identity").lower() != "identity":
            raise BillfoldError("unsupported-media-type", "Send the body as it is: no content-encoding is accepted.")

    def check_content_type(self) -> None:
        """Raise `unsupported-media-type` if the body is declared not to be JSON."""
        sent = self.header(b"content-type")
        if sent is not None and not _JSON_TYPE.fullmatch(sent):
            raise BillfoldError("unsupported-media-type", "Send the body as application/json.")


def raw_request_of(scope: Scope) -> RawRequest:
    """Return the request that came through the edge."""
    found: RawRequest = scope["state"][RAW_REQUEST]
    return found


async def read_body(request: RawRequest, receive: Receive, limit: int = BODY_BYTES_MAX) -> bytes:
    """Return the whole body. Raises `payload-too-large` before more than `limit` is in memory."""
    parts = [part async for part in body_parts(request, receive, limit)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def body_parts(request: RawRequest, receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """Yield the body as it arrives. Raises `payload-too-large` if it is larger than `limit`."""
    declared = request.headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    size = 0
    more = True
    while more:
        message = await receive()
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
    return declared_type(request) == "multipart/form-data"


def declared_type(request: RawRequest) -> str:
    """Return the content type of a body, without its parameters."""
    return (request.header(b"content-type") or "").partition(";")[0].strip().lower()


def too_large(limit: int) -> BillfoldError:
    """Return the error for a body of more than `limit` bytes."""
    return BillfoldError("payload-too-large", f"The body may have at most {limit:,} bytes.")


def is_uuid(text: str) -> bool:
    """Tell whether a text is the canonical form of a UUID, in either case."""
    return _UUID.fullmatch(text) is not None


def parse_uuid(source: str, name: str, text: str) -> UUID:
    """Return the id in a path or query. Raises InvalidInput at `source`.`name`."""
    if not is_uuid(text):
        raise InvalidInput.at(source, name, msg="must be a UUID of 36 characters", kind="uuid_parsing")
    return UUID(text)


@contextmanager
def in_body() -> Iterator[None]:
    """Prefix the location of errors with `body`."""
    try:
        yield
    except InvalidInput as wrong:
        raise InvalidInput(FieldError(("body", *each.loc), each.msg, each.type) for each in wrong.errors) from None


def instant_in_body(name: str, at: datetime) -> datetime:
    """Return a time in a body, in UTC. Raises InvalidInput at body.`name`."""
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
    return _checked(decoded, json.loads(body) if has_dates(declared) else None, declared)


def convert(values: Mapping[str, Any], declared: Any) -> Any:  # noqa: ANN401 - whatever the operation declares
    """Return a body whose fields are known by name as its declared type. Raises InvalidInput at `body`."""
    body = msgspec.to_builtins(values)
    _check_size(body, ())
    check_texts(body)
    try:
        converted = msgspec.convert(body, declared)
    except msgspec.ValidationError:
        raise InvalidInput(mistakes_in(body, declared)) from None
    return _checked(converted, body, declared)


def _checked(decoded: Any, body: Any, declared: Any) -> Any:  # noqa: ANN401 - as above
    if has_dates(declared) and (wrong := days_out_of_range(body, declared)):
        raise InvalidInput(wrong)
    if isinstance(decoded, CheckedBody) and (wrong := list(field_errors(decoded))):
        raise InvalidInput(wrong)
    return decoded


def missing_body() -> InvalidInput:
    """Return the error for a request without the required body."""
    return InvalidInput.at("body", msg="a JSON body is required", kind="missing")


def parse_cookies(request: RawRequest) -> dict[str, str]:
    """Return the cookies of a request: of a repeated name the first counts, being the most specific."""
    found: dict[str, str] = {}
    for part in (request.header(b"cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        found.setdefault(name, value)
    return found
