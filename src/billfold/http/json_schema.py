"""JSON schemas of the structs that operations accept and return, for OpenAPI 3.1."""

import typing
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType

from billfold.http.schemas import published_pattern

Document = dict[str, Any]
_SIMPLE: Mapping[Any, Document] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    UUID: {"type": "string", "format": "uuid"},
    date: {"type": "string", "format": "date"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
    object: {},
}
_CONSTRAINTS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "pattern": "pattern",
}


class Schemas:
    """The schemas of one document, by the names under which others refer to them."""

    def __init__(self) -> None:
        self.components: dict[str, Document] = {}
        self._requests: list[Document] = []

    def request(self, kind: Any) -> Document:  # noqa: ANN401 - any type
        """Return the schema of a body. Its objects take no other fields."""
        schema = self.response(kind)
        self._requests.append(schema)
        return schema

    def close_requests(self) -> None:
        """Declare that no object in a body takes other fields."""
        waiting = [*self._requests]
        seen: set[str] = set()
        while waiting:
            for name in set(_references(waiting.pop())) - seen:
                seen.add(name)
                if self.components[name].get("type") == "object":
                    self.components[name]["additionalProperties"] = False
                waiting.append(self.components[name])

    def response(self, kind: Any) -> Document:  # noqa: ANN401 - any type
        """Return the schema of a type."""
        struct = typing.get_origin(kind) or kind
        if isinstance(struct, type) and issubclass(struct, msgspec.Struct):
            return {"$ref": f"#/components/schemas/{self._component(kind, struct)}"}
        if typing.get_origin(kind) is not None:
            return self._generic(typing.get_origin(kind), typing.get_args(kind))
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return {"type": "string", "enum": [str(each) for each in kind]}
        return dict(_SIMPLE[kind])

    def _generic(self, origin: Any, arguments: tuple[Any, ...]) -> Document:  # noqa: ANN401
        if origin is typing.Annotated:
            return self.response(arguments[0]) | _constraints(arguments)
        if origin in {UnionType, typing.Union}:
            return self._union([each for each in arguments if each is not UnsetType])
        if origin is Literal:
            single = len(arguments) == 1
            choice = {"const": arguments[0]} if single else {"enum": list(arguments)}
            return {"type": "string", **choice}
        if origin in {list, tuple, frozenset}:
            return {"items": self.response(_bare(arguments[0])), "type": "array"}
        schema = {"additionalProperties": self.response(arguments[1]), "type": "object"}
        named = self.response(arguments[0])
        return schema if named == {"type": "string"} else {**schema, "propertyNames": named}

    def _union(self, kinds: list[Any]) -> Document:
        if len(kinds) == 1:
            return self.response(kinds[0])
        if kinds[1:] not in ([], [NoneType]):
            kinds = [_bare(each) for each in kinds]
        return {"oneOf": [self.response(each) for each in kinds]}

    def _component(self, kind: Any, struct: type[msgspec.Struct]) -> str:  # noqa: ANN401 - any type
        name = struct.__name__
        inner: Mapping[Any, Any] = {}
        if arguments := typing.get_args(kind):
            inner = dict(zip(_parameters_of(struct), arguments, strict=True))
            name = f"{name}_{_name_of(arguments[0])}"
        if name not in self.components:
            self.components[name] = {}  # a struct may refer to itself
            # Generators name their types by the title: no two may have the same.
            self.components[name] = {**self._struct(struct, inner), "title": name}
        return name

    def _struct(self, struct: type[msgspec.Struct], inner: Mapping[Any, Any]) -> Document:
        hints = typing.get_type_hints(struct, include_extras=True)
        config, properties, required = struct.__struct_config__, {}, []
        if config.tag_field is not None:
            properties[config.tag_field] = {"type": "string", "const": config.tag}
            required.append(config.tag_field)
        for each in msgspec.structs.fields(struct):
            properties[each.encode_name] = self._field(_filled(hints[each.name], inner), each)
            if each.required:
                required.append(each.encode_name)
        schema: Document = {"properties": properties, "type": "object"}
        return schema | {"required": sorted(required)}

    def _field(self, hint: Any, field: msgspec.structs.FieldInfo) -> Document:  # noqa: ANN401
        schema = self.response(hint)
        if [each.get("type") for each in schema.get("oneOf", ())][1:] == ["null"]:
            # The limits of a value stand next to the alternatives: they do not concern null.
            for each in schema["oneOf"]:
                for name in [*_CONSTRAINTS.values(), *_LENGTHS]:
                    if value := each.pop(name, None):
                        schema[name] = value
        if field.default not in (NODEFAULT, UNSET, None):
            schema["default"] = field.default
        return schema


_LENGTHS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "description")


def _constraints(arguments: tuple[Any, ...]) -> Document:
    """Return the schema keywords of an annotated type."""
    found: Document = {}
    counted = {list: "Items", dict: "Properties"}.get(typing.get_origin(arguments[0]), "Length")
    for meta in arguments[1:]:
        for name, keyword in _CONSTRAINTS.items():
            if (value := getattr(meta, name)) is not None:
                found[keyword] = published_pattern(value) if name == "pattern" else value
        for name, keyword in (("min_length", "min"), ("max_length", "max")):
            if (value := getattr(meta, name)) is not None:
                found[keyword + counted] = value
        if meta.description is not None:
            found["description"] = meta.description
        found |= meta.extra_json_schema or {}
    return found


def _filled(hint: Any, inner: Mapping[Any, Any]) -> Any:  # noqa: ANN401 - any type
    """Replace the parameters of a generic struct by its types."""
    if isinstance(hint, TypeVar):
        return inner[hint]
    if typing.get_origin(hint) is list:
        return list[_filled(typing.get_args(hint)[0], inner)]  # type: ignore[misc]
    return hint


def _bare(hint: Any) -> Any:  # noqa: ANN401 - any type
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _parameters_of(struct: type[msgspec.Struct]) -> tuple[Any, ...]:
    found: tuple[Any, ...] = struct.__parameters__  # type: ignore[attr-defined]
    return found


def _name_of(kind: Any) -> str:  # noqa: ANN401 - any type
    """Return the name of a struct; of a union the singular of the folder with its structs."""
    if isinstance(kind, type):
        return kind.__name__
    module: str = typing.get_args(kind)[0].__module__
    return module.split(".")[-2].title().removesuffix("s")


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        ref = value.get("$ref")
        if isinstance(ref, str) and ref.startswith("#/components/schemas/"):
            yield ref.rpartition("/")[2]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)
