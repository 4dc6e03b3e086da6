"""Writes the modules `partner` and `customer` of the client from the OpenAPI documents of the bank.

    python clients/python/generate.py

A shape that the bank answers with is a struct, one that it is asked with a typed dictionary, and an operation a method
of a class that waits and of one that awaits. Nothing of a document is left out but what the client does by itself:
tokens, signatures, proofs, and the id that a stream continues from.
"""

import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from source import class_name, default_of, docstring, identifier, noun_of, referred

APIS = {"partner": "x-service-idempotency", "customer": "idempotency-key"}
PACKAGE = Path(__file__).parent / "src" / "billfold_client"
_OWN_HEADERS = {"x-service-signature", "authorization", "dpop", "last-event-id"}
_TEXTS = {"uuid": "UUID", "date": "dt.date", "date-time": "dt.datetime"}
_SCALARS = {"integer": "int", "number": "float", "boolean": "bool", "string": "str", "null": "None"}
Schema = Mapping[str, Any]

_HEADER = '''\
"""The {title}: its operations and shapes. Generated from its OpenAPI document, version {version}."""
# ruff: noqa
# mypy: disable-error-code="no-any-return, explicit-override"

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union
from uuid import UUID

from typing_extensions import NotRequired, Required, TypedDict

from billfold_client.calls import Api, AsyncApi, Call, File, segment
from billfold_client.paging import AsyncPages, Pages
from billfold_client.shapes import UNSET, Shape, Unset, union
from billfold_client.streams import AsyncEventStream, EventStream

if TYPE_CHECKING:
    from typing import Literal, Literal as OneOf
else:
    from billfold_client.shapes import OneOf
'''


def main() -> None:
    """Read both documents at once, and write the modules that changed."""
    with ThreadPoolExecutor() as both:
        for api, document in zip(APIS, both.map(read_document, APIS), strict=True):
            module = PACKAGE / f"{api}.py"
            source = Module(api, document).source()
            if not module.exists() or module.read_text(encoding="utf-8") != source:
                module.write_text(source, encoding="utf-8")


def read_document(api: str) -> dict[str, Any]:
    """Return the document that `billfold openapi` prints."""
    command = [sys.executable, "-m", "billfold", "openapi", api]
    document: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return document


class Module:
    """One API as Python source."""

    def __init__(self, api: str, document: Schema) -> None:
        self._api, self._document = api, document
        self._schemas: Mapping[str, Schema] = document["components"]["schemas"]
        self._unions: dict[tuple[str, ...], str] = {}
        self._union_lines: list[str] = []
        self._asked: dict[str, None] = {}
        self._answered: dict[str, None] = {}

    def source(self) -> str:
        """Return the whole module."""
        operations = [
            operation
            for path, methods in self._document["paths"].items()
            for method, node in methods.items()
            for operation in self._operations(method, path, node)
        ]
        name, info = self._api.capitalize(), self._document["info"]
        about = docstring(info["description"], 1)
        classes = [
            line
            for kind, base in ((f"{name}Api", "Api"), (f"Async{name}Api", "AsyncApi"))
            for line in (
                *("", "", f"class {kind}({base}):", *about, "", f'    _key_header = "{APIS[self._api]}"'),
                *(line for each in operations for line in ("", *each.lines(is_async=base != "Api"))),
            )
        ]
        shapes = [*self._all(self._answered, self._struct), *self._all(self._asked, self._typed_dict)]
        header = _HEADER.format(title=info["title"], version=info["version"])
        return "\n".join([header, *shapes, *self._union_lines, *classes, ""])

    def _operations(self, method: str, path: str, node: Schema) -> list["Operation"]:
        """Return an operation, and its preview if it has one."""
        operation = Operation(self, method, path, node)
        previews = [True] * operation.has_preview
        return [operation, *(Operation(self, method, path, node, is_preview=each) for each in previews)]

    def _all(self, names: dict[str, None], lines_of: Any) -> list[str]:  # noqa: ANN401 - one of two methods
        """Return the source of all shapes, also of those that others bring."""
        done: dict[str, list[str]] = {}
        while missing := [each for each in names if each not in done]:
            for name in missing:
                done[name] = lines_of(name)
        return [line for name in sorted(done) for line in done[name]]

    def _struct(self, name: str) -> list[str]:
        schema = self._schemas[name]
        lines = ["", f"class {class_name(name)}(Shape, kw_only=True):", *docstring(schema.get("description", name), 1)]
        required = schema.get("required", ())
        for field, each in schema["properties"].items():
            kind = self.answered(each, class_name(name), field)
            if field not in required:
                default = "None" if kind.endswith("| None") else default_of(each)
                kind = f"{kind}{' | Unset' if default == 'UNSET' else ''} = {default}"
            lines += [f"    {identifier(field)}: {kind}", *docstring(each.get("description", ""), 1)]
        return lines

    def _typed_dict(self, name: str) -> list[str]:
        schema = self._schemas[name]
        about = docstring(schema.get("description", name), 1)
        lines = ["", f"class {self.asked_name(name)}(TypedDict, total=False):", *about]
        for field, each in schema["properties"].items():
            if keyword.iskeyword(field):
                raise ValueError(f"{name}.{field} cannot be written as a class")
            presence = "Required" if field in schema.get("required", ()) else "NotRequired"
            kind = self.asked(each, class_name(name), field)
            lines += [f"    {field}: {presence}[{kind}]", *docstring(each.get("description", ""), 1)]
        return lines

    def answered(self, schema: Schema, owner: str, field: str) -> str:
        """Return the type of a value in an answer; a text of a closed list may also be a newer one."""
        if "$ref" in schema:
            self._answered[referred(schema)] = None
            return class_name(referred(schema))
        kind = schema.get("format") in _TEXTS and _TEXTS[schema["format"]]
        return kind or self._composed(schema, owner, field, is_asked=False)

    def asked(self, schema: Schema, owner: str, field: str) -> str:
        """Return the type of a value in a request, where ids and dates may also be texts."""
        if "$ref" in schema:
            self._asked[referred(schema)] = None
            return self.asked_name(referred(schema))
        kind = schema.get("format") in _TEXTS and f"{_TEXTS[schema['format']]} | str"
        return kind or self._composed(schema, owner, field, is_asked=True)

    def _composed(self, schema: Schema, owner: str, field: str, *, is_asked: bool) -> str:
        inner = self.asked if is_asked else self.answered
        if texts := schema.get("enum") or ([schema["const"]] if "const" in schema else None):
            return f"{'Literal' if is_asked else 'OneOf'}[{', '.join(json.dumps(each) for each in texts)}]"
        if choices := schema.get("oneOf") or schema.get("anyOf"):
            return self._chosen(choices, owner, field, is_asked=is_asked)
        kind, extra = str(schema.get("type")), schema.get("additionalProperties")
        if kind == "array":
            item = inner(schema.get("items", {}), owner, field.removesuffix("s"))
            return f"{'Sequence' if is_asked else 'list'}[{item}]"
        if kind == "object":
            value = inner(extra, owner, field) if isinstance(extra, dict) and extra else "Any"
            return f"{'Mapping' if is_asked else 'dict'}[str, {value}]"
        return _SCALARS.get(kind, "Any")

    def _chosen(self, choices: list[Schema], owner: str, field: str, *, is_asked: bool) -> str:
        others = [each for each in choices if each.get("type") != "null"]
        inner = self.asked if is_asked else self.answered
        kinds = list(dict.fromkeys(inner(each, owner, field) for each in others))
        optional = ["None"] if len(others) < len(choices) else []
        references = tuple(referred(each) for each in others if "$ref" in each)
        if is_asked or len(references) < 2 or len(references) < len(kinds):  # noqa: PLR2004 - a choice is of two or more
            return " | ".join([*kinds, *optional])
        return " | ".join([self._union(references, owner, field), *optional])

    def _union(self, members: tuple[str, ...], owner: str, field: str) -> str:
        """Return the name of a union, which is declared the first time: at run time a field tells its members apart."""
        if members not in self._unions:
            named = "".join(part.capitalize() for part in field.split("_"))
            taken = {*map(class_name, self._schemas), *self._unions.values()}
            name = f"{owner}{named}" if named in taken else named
            self._unions[members] = name
            classes = [class_name(each) for each in members]
            told = ", ".join(f'"{value}": {class_name(each)}' for value, each in self._told_apart(members))
            self._union_lines += ["", "if TYPE_CHECKING:", f"    {name} = Union[{', '.join(classes)}]", "else:"]
            self._union_lines += [f'    {name} = union("{self._told_by(members)}", {{{told}}})']
        return self._unions[members]

    def _told_by(self, members: tuple[str, ...]) -> str:
        fields = [self._schemas[each]["properties"] for each in members]
        for field in fields[0]:
            if len({each.get(field, {}).get("const") for each in fields} - {None}) == len(members):
                return field
        raise ValueError(f"Nothing tells {', '.join(members)} apart")

    def _told_apart(self, members: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        field = self._told_by(members)
        return ((self._schemas[each]["properties"][field]["const"], each) for each in members)

    def asked_name(self, name: str) -> str:
        """Return the name of a shape in requests, which is another one where answers have it too."""
        return f"{class_name(name)}Fields" if name in self._in_answers else class_name(name)

    @cached_property
    def _in_answers(self) -> set[str]:
        """The shapes that any answer may have."""
        found: set[str] = set()
        paths = self._document["paths"].values()
        waiting: list[Any] = [each["responses"] for methods in paths for each in methods.values()]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                waiting += [each for key, each in node.items() if key != "example"]
                if isinstance(node.get("$ref"), str) and (name := referred(node)) not in found:
                    found.add(name)
                    waiting.append(self._schemas[name])
            elif isinstance(node, list):
                waiting += node
        return found

    def resolved(self, node: Schema) -> Schema:
        """Return what a reference to a schema or parameter is of."""
        if "$ref" not in node:
            return node
        found: Schema = self._document["components"][node["$ref"].split("/")[-2]][referred(node)]
        return found


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method, and what it is called in the API."""

    name: str
    kind: str
    required: bool
    about: str
    place: str

    @property
    def python(self) -> str:
        """Its name in Python: `filter[status]` is `status`, `type[]` is `type`."""
        return identifier(re.sub(r"^filter\[|\W+$", "", self.name))


class Operation:
    """One operation as a method, or its preview as another."""

    def __init__(self, module: Module, method: str, path: str, node: Schema, *, is_preview: bool = False) -> None:
        self._module, self._method, self._path, self._node = module, method.upper(), path, node
        self._name = f"preview_{node['operationId']}" if is_preview else str(node["operationId"])
        given = [module.resolved(each) for each in node.get("parameters", ())]
        headers = {each["name"].lower() for each in given if each["in"] == "header"}
        self._takes_key = not is_preview and any(each in headers for each in APIS.values())
        self.has_preview, self._is_preview = "x-preview" in node, is_preview
        if unknown := headers - _OWN_HEADERS - set(APIS.values()):
            raise ValueError(f"{self._name} has headers that the client does not know: {unknown}")
        self._parameters = [self._parameter(each["name"], each, place=each["in"]) for each in given]
        self._whole_body = ""
        self._parameters += self._body()
        results = {
            int(status): self._result(int(status), response)
            for status, response in node["responses"].items()
            if status < "4"
        }
        self._results = {200: module.answered(node["x-preview"], "", "preview")} if is_preview else results

    def _parameter(self, name: str, node: Schema, *, place: str) -> Parameter:
        kind = self._module.asked(node.get("schema", {}), class_name(self._name), name)
        about = node.get("description") or ""
        return Parameter(name, kind, node.get("required", False), about, place)

    def _body(self) -> list[Parameter]:
        ((content_type, content),) = self._node.get("requestBody", {"content": {"": {}}})["content"].items()
        schema = self._module.resolved(content.get("schema", {}))
        if content_type == "multipart/form-data":
            return [Parameter("file", "File", required=True, about="", place="files")]
        if content_type and "properties" not in schema:
            kind = self._module.asked(content["schema"], class_name(self._name), "body")
            return [Parameter("body", kind, required=True, about="", place="whole")]
        required = schema.get("required", ())
        place = "form" if content_type == "application/x-www-form-urlencoded" else "body"
        return [
            Parameter(
                field, self._module.asked(each, class_name(self._name), field), field in required,
                each.get("description", ""), place,
            )
            for field, each in schema.get("properties", {}).items()
        ]  # fmt: skip

    def _result(self, status: int, response: Schema) -> str:
        """Return the type of an answer."""
        if 300 <= status < 400:  # noqa: PLR2004 - a redirection
            return "Location"
        ((content_type, content),) = (response.get("content") or {"": {}}).items()
        if content_type == "application/json":
            return self._module.answered(content["schema"], "", noun_of(self._name))
        return {"": "None", "text/event-stream": "stream"}.get(content_type, "str")

    def lines(self, *, is_async: bool) -> list[str]:
        """Return the method of a client."""
        page = self._page()
        prefix = "Async" if is_async else ""
        kinds = list(dict.fromkeys(self._results.values()))
        shown = " | ".join("str" if each == "Location" else each for each in kinds)
        is_stream = kinds == ["stream"]
        returned = f"{prefix}Pages[{page}]" if page else f"{prefix}EventStream" if is_stream else shown
        awaits = is_async and not page and not is_stream
        taken = "_pages" if page else "_stream" if is_stream else "_call"
        return [
            f"    {'async ' if awaits else ''}def {self._name}(",
            *(f"        {each}," for each in self._signature(has_key=not is_stream)),
            f"    ) -> {returned}:",
            *docstring(self._about(), 2),
            f"        return {'await ' if awaits else ''}self.{taken}(",
            "            Call(",
            *(f"                {each}," for each in self._arguments()),
            "            )",
            "        )",
        ]

    def _page(self) -> str:
        """Return the type of the entries of a list that comes in pages, or nothing."""
        names = {each.name for each in self._parameters if each.place == "query"}
        ((_, response),) = [each for each in self._node["responses"].items() if each[0] < "4"][:1]
        schema = self._module.resolved((response.get("content") or {}).get("application/json", {}).get("schema", {}))
        fields = schema.get("properties", {})
        if "items" not in fields or names.isdisjoint({"cursor", "offset"}):
            return ""
        kind = self._module.answered(fields["items"], class_name(next(iter(self._results.values()))), "items")
        return kind.removeprefix("list[").removesuffix("]")

    def _signature(self, *, has_key: bool) -> Iterator[str]:
        yield "self"
        shown = [each for each in self._parameters if each.place != "header"]
        yield from (f"{each.python}: {each.kind}" for each in shown if each.place in {"path", "whole"})
        named = [each for each in shown if each.place not in {"path", "whole"}]
        has_key = has_key and self._takes_key and self._method != "GET"
        has_preview = self.has_preview and not self._is_preview
        if named or has_key or has_preview:
            yield "*"
        yield from (f"{each.python}: {each.kind}" for each in named if each.required)
        yield from (f"{each.python}: {each.kind} | Unset = UNSET" for each in named if not each.required)
        if has_preview:
            yield "preview_id: str | Unset = UNSET"
        if has_key:
            yield "idempotency_key: UUID | str | None = None"

    def _arguments(self) -> Iterator[str]:
        path = re.sub(r"{(\w+)}", lambda found: f"{{segment({identifier(found[1])})}}", self._path)
        yield f'"{self._method}"'
        yield f'f"{path}"' if path != self._path else f'"{path}"'
        shown = {"Location": '"Location"', "stream": "None"}
        yield f"{{{', '.join(f'{status}: {shown.get(kind, kind)}' for status, kind in self._results.items())}}}"
        for place in ("query", "body", "form", "files"):
            placed = [each for each in self._parameters if each.place == place]
            if placed or (place == "body" and self._node.get("requestBody") and self._has_json_object()):
                yield f"{place}={{{', '.join(f'{json.dumps(each.name)}: {each.python}' for each in placed)}}}"
        if any(each.place == "whole" for each in self._parameters):
            yield "body=body"
        if self.has_preview:
            yield 'headers={"prefer": "preview"}' if self._is_preview else 'headers={"preview-id": preview_id}'
        if self._method != "GET" and not self._is_preview:
            yield "key=idempotency_key" if self._takes_key else "is_repeatable=False"

    def _has_json_object(self) -> bool:
        schema = self._node["requestBody"]["content"].get("application/json", {}).get("schema", {})
        return "properties" in self._module.resolved(schema)

    def _about(self) -> str:
        summary, description = self._node["summary"].rstrip("."), self._node.get("description", "")
        if self._is_preview:
            return f"{summary}: preview.\n\nDoes nothing; with its `preview_id` it is done as shown, or refused."
        parts = [f"{summary}."]
        if description.rstrip(".") != summary:
            parts.append(description)
        parts += [
            f"`{each.python}`: {each.about}" for each in self._parameters if each.about and each.place != "header"
        ]
        return "\n\n".join(parts)


if __name__ == "__main__":
    main()
