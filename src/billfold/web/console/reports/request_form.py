"""The form of a report: what each kind of report asks for, and what was filled in as the API takes it. Pure."""

from collections.abc import Mapping
from typing import Any

from billfold.platform.errors import FieldError, InvalidInput
from billfold.reports.requests.schemas import OPTIONAL, REQUIRED
from billfold.reports.requests.types import ReportType

_IN_BODY = frozenset({"body", "parameters"})


class Wanted:
    """Which parameters a kind of report takes."""

    def __init__(self, kind: str) -> None:
        self.required = REQUIRED[ReportType(kind)] if kind else frozenset()
        self.optional = OPTIONAL[ReportType(kind)] if kind else frozenset()

    def __contains__(self, name: str) -> bool:
        return name in self.required or name in self.optional


def read_form(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the body of the request that a form stands for. What is not filled in is left out."""
    parameters: dict[str, Any] = {
        name: form[name].strip() for name in ("date", "date_from", "date_to", "date_type") if form.get(name, "").strip()
    }
    if pockets := checked(form, "pocket."):
        parameters["pocket_ids"] = pockets
    if cusips := form.get("cusips", "").replace(",", " ").upper().split():
        parameters["cusips"] = cusips
    return {"type": form.get("type", ""), "parameters": parameters, "output_formats": checked(form, "format.")}


def under_its_fields(wrong: InvalidInput) -> InvalidInput:
    """Return mistakes of a body under the names of the form's fields."""
    return InvalidInput(
        FieldError((next((part for part in each.loc if part not in _IN_BODY), "type"),), each.msg, each.type)
        for each in wrong.errors
    )


def checked(form: Mapping[str, str], prefix: str) -> list[str]:
    """Return what is checked of the boxes whose names begin with a prefix."""
    return [name.removeprefix(prefix) for name, value in form.items() if name.startswith(prefix) and value == "yes"]
