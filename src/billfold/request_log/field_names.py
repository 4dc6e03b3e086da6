"""Which names of fields the log may keep: those an operation declares. Any other may be a value in the wrong place."""

from collections.abc import Collection, Iterable, Iterator

from msgspec import inspect

from billfold.http.operations import Operation

NAMES_MAX = 10
UNKNOWN = "*"
"""Stands for a name that the operation does not have."""
_PLACES = frozenset({"body", "query", "path", "header"})
_HEADERS = frozenset({"idempotency-key", "x-service-idempotency", "content-type", "content-encoding", "last-event-id"})


def places_among(known: Collection[str], places: Iterable[list[str | int]]) -> list[str]:
    """Return the places of mistakes like `body.amount.value`, without positions in lists."""
    texts = ([each for each in place if isinstance(each, str)] for place in places)
    named = (".".join(each if each in known else UNKNOWN for each in place) for place in texts)
    return list(dict.fromkeys(named))[:NAMES_MAX]


def names_of(operation: Operation) -> frozenset[str]:
    """Return every name that an operation declares, of fields of its body at any depth and of parameters."""
    in_body = () if operation.body is None else _in_type(inspect.type_info(operation.body), set())
    in_query = (each.name for each in operation.query)
    return frozenset({*_PLACES, *_HEADERS, *operation.path_names, *in_query, *in_body})


def _in_type(info: object, seen: set[int]) -> Iterator[str]:
    """Yield the names of the fields of a type and of all in it; a type may hold itself."""
    if isinstance(info, list | tuple):
        for each in info:
            yield from _in_type(each, seen)
    elif isinstance(info, inspect.Type | inspect.Field) and id(info) not in seen:
        seen.add(id(info))
        if isinstance(info, inspect.Field):
            yield info.encode_name
        if isinstance(info, inspect.StructType) and info.tag_field:
            yield info.tag_field
        for each in info.__struct_fields__:
            yield from _in_type(getattr(info, each), seen)
