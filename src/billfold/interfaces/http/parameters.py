"""What the documents say of parameters. The operations take texts, so that every mistake of a
caller is told in one shape; what a text must look like is in its name and its description.
"""

import re
from typing import Any

from billfold.kit.paging import LIMIT_MAX

Document = dict[str, Any]

_UUID = {"type": "string", "format": "uuid"}
_DAY = {"type": "string", "format": "date"}
_CENTS = {"type": "integer", "minimum": 0}
_NO_UUIDS = {"key_id"}
_LISTED_IDS = {
    "account[]", "card[]", "filter[card]", "filter[portal]", "on_us_transfer[]", "pocket[]",
    "portal[]", "wire[]",
}  # fmt: skip
_SHAPES: dict[str, Document] = {
    "amount_from": _CENTS,
    "amount_to": _CENTS,
    "book_date_from": _DAY,
    "book_date_to": _DAY,
    "include_sweeps": {"type": "boolean", "default": False},
    "settlement_date_from": _DAY,
    "settlement_date_to": _DAY,
}
_CHOICE = re.compile(r"[\w-]+(?:, [\w-]+)* or [\w-]+\.")
_DEFAULT = re.compile(r"[Dd]efault (\d+)")


def shaped(parameter: Document) -> Document:
    """Return a parameter with what a caller may send: an id, a number, a day, one of a few words.

    Leaving a parameter out is not sending null, so that no query parameter may be null.
    """
    if parameter.get("in") not in {"path", "query"}:
        return parameter
    schema = parameter["schema"]
    told = [each for each in schema.get("oneOf", [schema]) if each != {"type": "null"}]
    known = dict(told[0]) if len(told) == 1 else dict(schema)
    known.pop("description", None)
    return {**parameter, "schema": _shape(parameter, known)}


def _shape(parameter: Document, known: Document) -> Document:
    name, text = parameter["name"], parameter.get("description") or ""
    if name in _LISTED_IDS or name.endswith("_id[]"):
        return {**known, "items": _UUID}
    if name.endswith("_id") and name not in _NO_UUIDS:
        return _UUID
    if name == "limit":
        usual = _DEFAULT.search(text)
        default = {"default": int(usual[1])} if usual else {}
        return {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, **default}
    if known.get("type") == "string" and _CHOICE.fullmatch(text):
        return {**known, "enum": re.findall(r"\b(?!or\b)[\w-]+", text)}
    return _SHAPES.get(name, known)
