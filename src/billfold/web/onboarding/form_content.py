"""Forms of a step into the body of the API, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from billfold.web.onboarding.steps import NO_CATEGORY, Field, Kind
from billfold.onboarding.applications.content import Content
from billfold.onboarding.applications.schemas import mask_number
from billfold.platform.errors import FieldError

MERGED: Final = frozenset({"contact", "risk_info"})
"""Of these a change replaces each field by itself; of other objects it replaces the whole."""
_PHONE_MARKS: Final = str.maketrans("", "", " ()-./\u00a0\u2011")
_STATE_LETTERS: Final = 2


def content_in(fields: Iterable[Field], form: Mapping[str, str], stored: Content) -> Content:
    """Return what a form of these fields says, as a body of the API; null for what is empty.

    A number that is left empty stays as it is stored.
    """
    tree: dict[str, Any] = {}
    for each in fields:
        *way, name = each.path.split(".")
        place = tree
        for part in way:
            place = place.setdefault(part, {})
        place[name] = _value_in(each, form)
    number = tree.get("identification_number")
    known = stored.get("identification_number")
    if number and known and number.get("identification_number") is None and any(number.values()):
        number["identification_number"] = known["identification_number"]
    return {name: _pruned(value, is_merged=name in MERGED) for name, value in tree.items()}


def typed_in(fields: Iterable[Field], form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form as they were typed, without numbers."""
    names = {name for each in fields if each.kind != Kind.SECRET for name in names_of(each)}
    return {name: value for name, value in form.items() if name in names}


def values_of(fields: Iterable[Field], content: Content) -> dict[str, str]:
    """Return how the fields of a form are filled in with what is stored; numbers are left empty."""
    found: dict[str, str] = {}
    for each in fields:
        value = value_at(content, each.path)
        if value is None or each.kind == Kind.SECRET:
            continue
        if each.kind == Kind.MANY:
            found |= {f"{each.path}.{option}": "yes" for option in (value or [NO_CATEGORY])}
        elif each.kind == Kind.YES_NO:
            found[each.path] = "yes" if value else "no"
        else:
            found[each.path] = _percent(value) if each.kind == Kind.PERCENT else str(value)
    return found


def shown_of(fields: Iterable[Field], content: Content) -> dict[str, str]:
    """Return what is stored in words, by label; numbers are masked, and what is empty is left out."""
    return {each.label: text for each in fields if (text := shown_at(each, content))}


def shown_at(field: Field, content: Content) -> str:
    """Return what is stored in a field in words, a number masked."""
    value = value_at(content, field.path)
    if value is None:
        return ""
    if field.kind == Kind.SECRET:
        return mask_number(value)
    if field.kind == Kind.MANY:
        return "; ".join(field.options.get(each, each) for each in (value or [NO_CATEGORY]))
    if field.kind == Kind.YES_NO:
        return "Yes" if value else "No"
    return f"{_percent(value)} %" if field.kind == Kind.PERCENT else field.options.get(value, str(value))


def value_at(content: Content, path: str) -> Any:  # noqa: ANN401 - any value of a body
    """Return what stands at a place of a body, None for nothing."""
    value: Any = content
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def drop(content: Content, loc: tuple[str | int, ...]) -> str | None:
    """Take what is wrong out of a body; return its place, None if it is not there. `loc` begins with `body`."""
    top, *more = [str(each) for each in loc[1:]] or [""]
    inner = content.get(top)
    if top in MERGED and more and isinstance(inner, dict) and more[0] in inner:
        del inner[more[0]]
        return f"{top}.{more[0]}"
    return top if content.pop(top, _NOTHING) is not _NOTHING else None


def field_of(fields: Iterable[Field], error: FieldError) -> Field | None:
    """Return the field that a mistake is shown at."""
    path = ".".join(str(each) for each in error.loc[1:] if isinstance(each, str))
    places = [each for each in fields if _covers(each.path, path)]
    return next((each for each in places if each.path == path), places[0] if places else None)


_NOTHING: Final = object()


def _covers(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.") or other.startswith(f"{path}.")


def names_of(field: Field) -> list[str]:
    """Return the names under which a field is in a form: a list has one for each of its options."""
    return [f"{field.path}.{each}" for each in field.options] if field.kind == Kind.MANY else [field.path]


def _value_in(field: Field, form: Mapping[str, str]) -> Any:  # noqa: ANN401 - any value of a body
    if field.kind == Kind.MANY:
        chosen = [each for each in field.options if form.get(f"{field.path}.{each}")]
        return None if not chosen else [each for each in chosen if each != NO_CATEGORY]
    text = form.get(field.path, "").strip()
    read = _READ.get(field.kind, _upper_state if field.path.endswith(".state") else str)
    return read(text) if text else None


def _upper_state(text: str) -> str:
    return text.upper() if len(text) == _STATE_LETTERS else text


def _share(percent: str) -> str:
    """Return a percentage as a share: `51` is `0.51`. What is none stays as it is, for the API to refuse."""
    try:
        share = Decimal(percent.removesuffix("%").strip().replace(",", ".")) / 100
    except InvalidOperation:
        return percent
    if not share.is_finite() or share < 0 or len(percent) > 20:  # noqa: PLR2004 - more than any share has
        return percent
    text = f"{share:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_READ: Final[Mapping[Kind, Callable[[str], Any]]] = {
    Kind.YES_NO: lambda text: text == "yes",
    Kind.PHONE: lambda text: text.translate(_PHONE_MARKS),
    Kind.PERCENT: _share,
}
"""What is made of a text before it is sent to the API."""


def _percent(share: str) -> str:
    text = f"{Decimal(share) * 100:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _pruned(value: Any, *, is_merged: bool = False) -> Any:  # noqa: ANN401 - any value of a body
    """Return a part of a body without what is empty in it; None where nothing is left."""
    if not isinstance(value, dict):
        return value
    pruned = {name: _pruned(each) for name, each in value.items()}
    if is_merged:
        return pruned
    return {name: each for name, each in pruned.items() if each is not None} or None
