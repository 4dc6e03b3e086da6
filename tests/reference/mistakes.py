"""Wrong requests that follow from the OpenAPI document: each with the place at which it must be refused.

Per-route tests try only what the document cannot say (fields that contradict each other, check digits).
"""

import re
from itertools import zip_longest

from tests.reference.documents import DOCUMENTS, operations_of

from billfold.http.schemas import NOT_BLANK

OPERATIONS = {
    api: {name: (path, each) for name, _, path, each in operations_of(document)} for api, document in DOCUMENTS.items()
}
PLACEHOLDER = re.compile(r"\{(\w+)\}")
NONE, INVISIBLE = "no such value", " \u200b\u3164"
FORMATS = {"uuid", "date", "date-time"}


def _resolved(schema, components):
    while "$ref" in schema:
        schema = components[schema["$ref"].rpartition("/")[2]]
    return schema


def variants_of(schema, components):
    """Return the schemas one of which a value has; those of null are left out."""
    schema = _resolved(schema, components)
    shared = {name: value for name, value in schema.items() if name not in {"oneOf", "anyOf"}}
    choices = schema.get("oneOf") or schema.get("anyOf") or [{}]
    found = [shared | _resolved(each, components) for each in choices]
    return [each for each in found if each.get("type") != "null"]


def wrong_values(schema, components):
    """Return values that a schema of one type excludes."""
    variants = variants_of(schema, components)
    if len(variants) != 1 or "type" not in variants[0]:
        return []
    (only,) = variants
    wrong: list[object] = [7 if only["type"] == "array" else [7]]
    if only["type"] == "string":
        wrong += [7]
        wrong += [NONE] if {"enum", "const"} & set(only) or only.get("format") in FORMATS else []
        wrong += [""] if only.get("minLength") else []
        wrong += ["1" * (only["maxLength"] + 1)] if "maxLength" in only else []
        if "pattern" in only and not re.search(only["pattern"], INVISIBLE):
            wrong += [INVISIBLE, *(["a\0b"] if only["pattern"] == NOT_BLANK else [])]
    elif only["type"] in {"integer", "number"}:
        wrong += ["x", *beyond(only)]
    elif only["type"] == "array" and only.get("minItems"):
        wrong += [[]]
    return wrong


def beyond(schema):
    """Return the numbers next to the ends of a range."""
    ends = (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0))
    return [schema[end] + step for end, step in ends if end in schema]


def _object_of(schema, components, value):
    """Return the schema of an object, chosen by its tag if there are several."""
    found = [each for each in variants_of(schema, components) if each.get("type") == "object"]
    if len(found) > 1:
        found = [each for each in found if _is_of(each, components, value)]
    return found[0] if len(found) == 1 else None


def _is_of(schema, components, value):
    tags = {name: _resolved(each, components) for name, each in schema.get("properties", {}).items()}
    return all(value.get(name) == each["const"] for name, each in tags.items() if "const" in each) and any(
        "const" in each for each in tags.values()
    )


def fields_of(schema, components, value, place=("body",)):
    """Yield (location, wrong values) of every field of a body; the value `...` removes the field."""
    found = _object_of(schema, components, value)
    if found is None:
        return
    for name, field in found.get("properties", {}).items():
        if "const" in _resolved(field, components):
            continue
        missing = [...] if name in found.get("required", ()) and name in value else []
        yield (*place, name), [*wrong_values(field, components), *missing]
        if isinstance(value.get(name), dict):
            yield from fields_of(field, components, value[name], (*place, name))
    if found.get("additionalProperties") is False:
        yield (*place, "colour"), ["red"]
    return


def changed(body, place, value):
    """Return a body with another value at a location."""
    name, *deeper = place
    if deeper:
        return body | {name: changed(body[name], deeper, value)}
    if value is ...:
        return {each: body[each] for each in body if each != name}
    return body | {name: value}


def wrong_bodies(api, operation, body):
    """Yield (locations, body): with as many distinguishable mistakes as possible, then with each alone."""
    document = DOCUMENTS[api]
    (media,) = operation["requestBody"]["content"].values()
    components = document["components"]["schemas"]
    fields = fields_of(media["schema"], components, body)
    for row in zip_longest(*([(place, value) for value in values] for place, values in fields)):
        together: dict[tuple[str, ...], object] = {}
        for place, value in filter(None, row):
            # A whole that is wrong says nothing of its parts.
            if not any(place[: len(each)] == each or each[: len(place)] == place for each in together):
                together[place] = value
        yield (
            list(together),
            with_all(body, together),
            [([each], with_all(body, {each: together[each]})) for each in together],
        )


def with_all(body, values):
    """Return a body with other values at these locations."""
    for place, value in values.items():
        body = changed(body, place[1:], value)
    return body


def wrong_queries(operation):
    """Yield (locations, filters); only the first mistake of a query is reported."""
    yield [("query", "colour")], {"colour": "red"}
    for each in operation.get("parameters", ()):
        if each.get("in") != "query":
            continue
        schema, name = each["schema"], each["name"]
        only = schema.get("items", schema)
        excludes = {"enum", "pattern"} & set(only) or only.get("format") in FORMATS or only["type"] != "string"
        wrong = [NONE] if excludes or name == "cursor" else []
        place = ("query", name, 0) if only is not schema and only.get("format") == "uuid" else ("query", name)
        for value in (*wrong, *beyond(only)):
            yield [place], {name: str(value)}


def wrong_paths(operation, template, path):
    """Yield (locations, path) with one invalid id."""
    schemas = {each["name"]: each["schema"] for each in operation.get("parameters", ()) if each.get("in") == "path"}
    for name, value in ids_in(template, path):
        if schemas[name].get("format") == "uuid":
            yield [("path", name)], path.replace(value, "mine")
            if name != "trace_id":  # which headers and problems write without hyphens
                yield [("path", name)], path.replace(value, value.replace("-", ""))


def wrong_requests(api, name, path, body):
    """Yield (places, what is wrong, the same one by one) of an operation that is called with a path and a body."""
    template, operation = OPERATIONS[api][name]
    for places, wrong in wrong_paths(operation, template, path):
        yield places, {"path": wrong}, []
    for places, wrong in wrong_queries(operation):
        yield places, {"filters": wrong}, []
    if isinstance(body, dict) and body and "requestBody" in operation:
        for places, wrong, alone in wrong_bodies(api, operation, body):
            yield places, {"body": wrong}, [(place, {"body": each}) for place, each in alone]


def ids_in(template, path):
    """Return (name, value) of each placeholder of a path."""
    pattern = PLACEHOLDER.sub("([^/]+)", re.escape(template).replace(r"\{", "{").replace(r"\}", "}"))
    found = re.fullmatch(pattern, path)
    assert found is not None, (template, path)
    return list(zip(PLACEHOLDER.findall(template), found.groups(), strict=True))
