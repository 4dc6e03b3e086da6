"""Shared by OAuth endpoints: form parameters, read strictly, errors as JSON, and their OpenAPI."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from billfold.http.raw_request import RawRequest
from billfold.http.responses import Header, HttpResponse, json_response
from billfold.oauth.types import OAuthError

FORM = "application/x-www-form-urlencoded"
_FIELDS_MAX = 40
_VALUE_CHARS_MAX = 16_384

Fields = Mapping[str, str]
NOT_CACHED: Header = (b"pragma", b"no-cache")
STRING: Mapping[str, Any] = {"type": "string"}
_ERROR: Mapping[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": STRING, "error_description": STRING},
}
_STATUS = {"invalid_client": 401, "invalid_token": 401}
"""Errors whose status is not 400."""


def form_of(request: RawRequest) -> Fields:
    """Return the fields of a posted form. Raises OAuthError `invalid_request`."""
    kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != FORM:
        raise OAuthError("invalid_request", f"Send the fields as {FORM}.")
    return fields_of(request.body)


def fields_of(encoded: bytes) -> Fields:
    """Return the fields of a form or a query. Raises OAuthError `invalid_request`.

    A field without a value counts as not sent (RFC 6749, 3.1).
    """
    try:
        pairs = parse_qsl(
            encoded.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(encoded),
            max_num_fields=_FIELDS_MAX,
            errors="strict",
        )
    except (ValueError, UnicodeError):
        raise OAuthError("invalid_request", "The parameters cannot be read.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise OAuthError("invalid_request", "A parameter is repeated.")
    for value in fields.values():
        if len(value) > _VALUE_CHARS_MAX or not value.isprintable():
            raise OAuthError("invalid_request", "A parameter is not text, or too long.")
    return {name: value for name, value in fields.items() if value}


def required(fields: Fields, name: str) -> str:
    """Return a required field. Raises OAuthError `invalid_request`."""
    value = fields.get(name)
    if value is None:
        raise OAuthError("invalid_request", f"{name} is missing.")
    return value


def error_response(error: OAuthError, *headers: Header) -> HttpResponse:
    """Return the answer to a client (RFC 6749, 5.2)."""
    body = {"error": error.error, "error_description": error.description}
    return json_response(body, _STATUS.get(error.error, 400), NOT_CACHED, *headers)


def form_openapi(fields: Mapping[str, Any], required: Iterable[str], *errors: str) -> dict[str, Any]:
    """Return the OpenAPI of a form and of the errors (RFC 6749) it may be answered with."""
    schema = {"type": "object", "required": list(required), "properties": dict(fields)}
    content = {"application/json": {"schema": _ERROR}}
    return {
        "requestBody": {"required": True, "content": {FORM: {"schema": schema}}},
        "responses": {
            "400": {"description": f"{', '.join(errors)} (RFC 6749)", "content": content},
            "401": {"description": "invalid_client (RFC 6749)", "content": content},
        },
    }
