"""An operation of the API reference tried in this sandbox: a form made from its parameters, and the response.

The requests are like a program's: signed with the credentials that the sandbox has published, limited and logged like
all others. A form that is sent twice is one request with one idempotency key.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx
import msgspec
from litestar import get, post

from billfold.documentation.operations import ApiOperation, Call, Content, call_of, resolved
from billfold.documentation.samples import curl_sample
from billfold.platform.errors import InvalidInput
from billfold.platform.ids import command_id
from billfold.sandbox.control_room.room import PATH, READ_BYTES_MAX, ControlRoom, InRoom
from billfold.sandbox.control_room.simulations import IDS, field_of, list_known
from billfold.sandbox.running_sandbox import SandboxFile
from billfold.web.page_context import PUBLIC, FormError, PageResponse
from billfold_client.errors import ApiError

_ONE = f"{PATH}/try/{{api:str}}/{{operation_id:str}}"
_SHOWN_CHARS = 30_000
_OTHER_PATHS = frozenset({".", ".."})
_UNSHOWN = frozenset({"content-length", "date", "server", "vary"})
"""Headers that carry no information about the request."""


class Answer(NamedTuple):
    """The response: the status in words, headers, and the body as text."""

    status: str
    headers: list[tuple[str, str]]
    body: str
    is_error: bool
    is_cut: bool


@get(_ONE, opt=PUBLIC)
async def show_trial(api: str, operation_id: str, room: InRoom) -> PageResponse:
    """Show the form of an operation."""
    return await _show(room, room.calls.find(api, operation_id))


@post(_ONE, opt=PUBLIC)
async def try_operation(api: str, operation_id: str, room: InRoom) -> PageResponse:
    """Send the request of the form, and show it with the response."""
    operation = room.calls.find(api, operation_id)
    try:
        call = _call(operation, room.page.form)
        key = str(command_id("try it", room.page.form_key))
        response = await room.calls.send(call, key=key, client=room.page.request.client)
    except InvalidInput as wrong:
        return await _show(room, operation, wrong=wrong)
    except ApiError as refused:
        return await _show(room, operation, wrong=f"The credentials of the sandbox are not accepted: {refused}")
    return await _show(room, operation, call=call, answer=_answer(response))


async def _show(
    room: ControlRoom,
    operation: ApiOperation,
    *,
    wrong: FormError = "",
    call: Call | None = None,
    answer: Answer | None = None,
) -> PageResponse:
    usual, box = call_of(operation), room.calls.credentials
    fields = [
        await field_of(
            room,
            each["name"],
            _schema(operation, each),
            is_required=each.get("required", False),
            value=usual.variables.get(each["name"]),
            customer_id=box.customer_id,
        )
        for _, each in _parameters(operation)
    ]
    body = await _of_this_bank(room, usual.body, box) if operation.content in _TYPED else None
    given = "" if body is None else json.dumps(body, indent=2, ensure_ascii=False)
    return room.render(
        "control_room_trial",
        wrong=wrong,
        operation=operation,
        fields=fields,
        given=room.page.form.get("body", given),
        is_stream=usual.is_stream,
        sends_file=operation.content is Content.FILE,
        answer=answer,
        curl=curl_sample(call) if call else "",
    )


async def _of_this_bank(room: ControlRoom, value: Any, box: SandboxFile) -> Any:  # noqa: ANN401 - any JSON
    """Return a recorded body with the ids and credentials of another bank replaced by this one's."""
    if isinstance(value, list):
        return [await _of_this_bank(room, each, box) for each in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, each in value.items():
        known = await list_known(room.api, name, box.customer_id) if name in IDS and each else []
        own = {"username": box.username, "password": box.password}.get(name) or (known[0][0] if known else None)
        found[name] = own if own is not None else await _of_this_bank(room, each, box)
    return found


_TYPED = {Content.JSON, Content.FORM}


def _parameters(operation: ApiOperation) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the parameters of a form besides the body, each with its location."""
    return [(place, each) for place in ("path", "query") for each in operation.parameters_in(place)]


def _schema(operation: ApiOperation, parameter: Mapping[str, Any]) -> dict[str, Any]:
    return dict(resolved(operation.document, parameter.get("schema", {})))


def _call(operation: ApiOperation, form: Mapping[str, str]) -> Call:
    """Return the call of a form. Raises InvalidInput."""
    given: dict[str, dict[str, str]] = {"path": {}, "query": {}}
    for place, each in _parameters(operation):
        name, text = each["name"], form.get(each["name"], "").strip()
        if each.get("required") and not text:
            raise InvalidInput.at(place, name, msg="must be given")
        if place == "path" and text in _OTHER_PATHS:
            raise InvalidInput.at("path", name, msg="would lead to another path")
        if text or place == "path":
            given[place][name] = text
    call = call_of(operation, given["path"], _body(operation, form.get("body", "")))
    if call.is_stream:
        raise InvalidInput.at("body", "stream", msg="has no end: read it with curl")
    return replace(call, query=urlencode(given["query"]))


def _body(operation: ApiOperation, text: str) -> Any:  # noqa: ANN401 - any JSON
    if operation.content not in _TYPED:
        return None
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidInput.at("body", "body", msg="is not JSON") from None
    if operation.content is Content.FORM and not isinstance(body, dict):
        raise InvalidInput.at("body", "body", msg="must be an object")
    return body


def _answer(response: httpx.Response) -> Answer:
    text = _text(response)
    return Answer(
        status=f"{response.status_code} {response.reason_phrase}",
        headers=[(name, value) for name, value in response.headers.items() if name not in _UNSHOWN],
        body=text[:_SHOWN_CHARS],
        is_error=response.is_error,
        is_cut=len(text) > _SHOWN_CHARS,
    )


def _text(response: httpx.Response) -> str:
    """Return a body as text: JSON with a line for each field, or the description of a file."""
    kind = response.headers.get("content-type", "").partition(";")[0]
    size = len(response.content)
    if kind.endswith("json"):
        with suppress(msgspec.DecodeError):  # a long stream is not read to its end
            return msgspec.json.format(response.content).decode()
    if kind.startswith("text/") or kind.endswith("json"):
        return response.text
    return f"{kind}, {size:,} bytes{' or more' if size >= READ_BYTES_MAX else ''}" if size else ""
