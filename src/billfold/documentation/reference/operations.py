"""An operation as its OpenAPI document describes it: what the pages and samples of the reference are made from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from billfold.documentation.reference.fields import Node, resolved

_METHODS = ("get", "post", "put", "patch", "delete")
_SPELLED = {
    "ach": "ACH",
    "csv": "CSV",
    "id": "ID",
    "json": "JSON",
    "oauth": "OAuth",
    "pin": "PIN",
    "pdf": "PDF",
    "usdc": "USDC",
    "v1": "v1",
}
_NAME_WORDS_MAX = 5
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"


class Content(StrEnum):
    """What the body of a request is."""

    NONE = "none"
    JSON = "json"
    FORM = "form"
    FILE = "file"


class Proof(StrEnum):
    """What a request carries to prove its sender."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 - a kind, not a secret
    TOKEN_AND_KEY = "token-and-key"  # noqa: S105 - as above
    SIGNATURE = "signature"
    OAUTH = "oauth"
    ASSERTION = "assertion"


@dataclass(frozen=True, kw_only=True)
class ApiOperation:
    """One method of one path of a document."""

    api: str
    """The name of its API in addresses: partner, customer, auth."""
    document: Node
    method: str
    path: str
    node: Node

    @property
    def id(self) -> str:
        """Its name in the document, and in its address."""
        return str(self.node["operationId"])

    @property
    def name(self) -> str:
        """Its short name: verb and object."""
        return short_name(str(self.node["summary"]), self.id)

    @property
    def address(self) -> str:
        """Where its page is."""
        return f"/docs/api/{self.api}/{self.id}"

    @cached_property
    def parameters(self) -> Sequence[Node]:
        """Its parameters, those of every operation included."""
        return [resolved(self.document, each) for each in self.node.get("parameters", [])]

    def parameters_in(self, place: str) -> list[Node]:
        """Return its parameters in the path, the query or a header."""
        return [each for each in self.parameters if each["in"] == place]

    @property
    def content(self) -> Content:
        """What its body is."""
        kinds = self.node.get("requestBody", {}).get("content", {})
        if not kinds:
            return Content.NONE
        return Content.JSON if _JSON in kinds else Content.FORM if _FORM in kinds else Content.FILE

    @property
    def body_schema(self) -> Node:
        """The schema of its body."""
        kinds = self.node.get("requestBody", {}).get("content", {})
        return next((each.get("schema", {}) for each in kinds.values()), {})

    @property
    def request_example(self) -> Any:  # noqa: ANN401 - any JSON
        """The recorded example of its body; of a form, what it must hold."""
        kinds = self.node.get("requestBody", {}).get("content", {})
        found = next((each["example"] for each in kinds.values() if "example" in each), None)
        return _form_example(self.body_schema) if self.content is Content.FORM else found

    @property
    def proof(self) -> Proof:
        """What proves its sender."""
        names = {each["name"].lower() for each in self.parameters_in("header")}
        security = self.node.get("security", [])
        if "client_assertion" in self.body_schema.get("required", []):
            return Proof.ASSERTION
        if not security:
            return Proof.NONE
        if any("CodeBearer" in each for each in security):
            return Proof.OAUTH
        if "x-service-signature" in names:
            return Proof.SIGNATURE
        return Proof.TOKEN_AND_KEY if "x-service-idempotency" in names else Proof.TOKEN

    @property
    def scopes(self) -> list[str]:
        """The scopes of which a token needs one."""
        return [scope for each in self.node.get("security", []) for scopes in each.values() for scope in scopes]

    def responses(self, *, is_error: bool) -> list[tuple[str, Node]]:
        """Return its responses by status, those that are errors or the others."""
        found = sorted(self.node["responses"].items())
        return [(status, each) for status, each in found if status.startswith(("2", "3")) is not is_error]

    @property
    def answers(self) -> Mapping[str, Any]:
        """The contents of its first response that is no error, by media type."""
        first: Mapping[str, Any] = next((each for _, each in self.responses(is_error=False)), {})
        found: Mapping[str, Any] = first.get("content", {})
        return found


def operations_of(api: str, document: Node) -> Iterator[ApiOperation]:
    """Yield the operations of a document, in the order of their paths."""
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield ApiOperation(api=api, document=document, method=method.upper(), path=path, node=item[method])


def short_name(summary: str, operation_id: str) -> str:
    """Return a summary if it is short, else the words of the operation's id."""
    if len(summary.split()) <= _NAME_WORDS_MAX and not re.search(r"[,;:.]", summary):
        return summary
    first, *others = operation_id.split("_")
    return " ".join([_SPELLED.get(first, first.capitalize()), *(_SPELLED.get(each, each) for each in others)])


def group_name(tag: str) -> str:
    """Return a tag as a heading."""
    first, *others = tag.split("-")
    return " ".join([_SPELLED.get(first, first.capitalize()), *(_SPELLED.get(each, each) for each in others)])


def _form_example(schema: Node) -> dict[str, str]:
    """Return what a form must hold, but for what proves its sender."""
    properties = schema.get("properties", {})
    return {name: _value_of(properties[name]) for name in schema.get("required", []) if "client_assertion" not in name}


def _value_of(schema: Node) -> str:
    return str(schema["const"] if "const" in schema else (schema.get("enum") or ["..."])[-1])
