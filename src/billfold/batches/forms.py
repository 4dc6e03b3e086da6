"""Rows of a batch that add a counterparty or open a Pocket: the body and the command of a single one."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from msgspec import UNSET

from billfold.accounts.addresses import Address
from billfold.accounts.counterparties.commands import AddCounterparty
from billfold.accounts.counterparties.requests import add_counterparty_command
from billfold.accounts.counterparties.routes import CreateCounterparty, PartnerCreateCounterparty
from billfold.accounts.pockets.commands import OpenPocket
from billfold.accounts.pockets.routes import CreateOwnPocket, CreatePocket, open_pocket_command
from billfold.batches.commands import CounterpartyList, PocketList
from billfold.batches.rows import RowFormat
from billfold.batches.types import NewCounterparty, NewPocket
from billfold.http.caller import Call
from billfold.http.raw_request import convert
from billfold.identity.partners.caller import Caller
from billfold.ledger.bank import Bank
from billfold.platform.errors import FieldError, InvalidInput

NewObject = AddCounterparty | OpenPocket
COMMANDS: Final[Mapping[str, type[NewObject]]] = {"COUNTERPARTIES": AddCounterparty, "POCKETS": OpenPocket}
LISTS: Final = {"COUNTERPARTIES": CounterpartyList, "POCKETS": PocketList}
ROW_CALLERS: Final = {"COUNTERPARTIES": "batch-counterparty", "POCKETS": "batch-pocket"}
"""The caller of the command of a row; its key is in the content of the row."""
_NAMES = ("business_name", "first_name", "last_name")


def format_for(caller: Call, kind: str) -> RowFormat:
    """Return the format of the rows that a caller may send."""
    return RowFormat(NewPocket if kind == "POCKETS" else NewCounterparty, partial(_mistakes, caller=caller))


async def read_command(caller: Call, bank: Bank, owner: UUID, order: NewCounterparty | NewPocket) -> NewObject:
    """Return the command of a row. Raises InvalidInput at its columns."""
    try:
        form = _form_of(order, caller)
        if isinstance(order, NewPocket):
            return await open_pocket_command(caller, bank, owner, data=form)
        return await add_counterparty_command(caller, bank, owner, form=form)
    except InvalidInput as wrong:
        raise InvalidInput(_at_columns(wrong.errors, order.__struct_fields__)) from None


def _mistakes(order: NewCounterparty | NewPocket, *, caller: Call) -> Iterator[FieldError]:
    of_partner = isinstance(caller, Caller)
    if of_partner != (order.customer_id is not None):
        why = "is required" if of_partner else "is not allowed: they are added for the customer of the token"
        yield FieldError(("body", "customer_id"), why, "value_error")
    try:
        _form_of(order, caller)
    except InvalidInput as wrong:
        yield from _at_columns(wrong.errors, order.__struct_fields__)


def _form_of(order: NewCounterparty | NewPocket, caller: Call) -> Any:  # noqa: ANN401 - a union of bodies
    """Return the body of a row alone. Raises InvalidInput at its fields."""
    of_partner = isinstance(caller, Caller)
    given = {field: each for field in order.__struct_fields__ if (each := getattr(order, field)) is not None}
    for field in ("customer_id", "idempotency_key"):
        given.pop(field, None)
    if isinstance(order, NewPocket):
        if given.pop("reinvestment_strategy_id", None) is not UNSET:
            given["reinvestment_strategy_id"] = order.reinvestment_strategy_id
        return convert(given, CreatePocket if of_partner else CreateOwnPocket)
    name = {each: given.pop(each) for each in _NAMES if each in given}
    kind = "business" if "business_name" in name or not name else "individual"
    nested: dict[str, Any] = {"counterparty_name": {"type": kind, **name}}
    address = {each: given.pop(each) for each in Address.__struct_fields__ if each in given}
    if address or order.type in {"wire", "international_wire"}:
        nested["address"] = address
    if "verification" in given:
        nested["verification"] = {"type": given.pop("verification")}
    return convert(
        {**given, **nested, "type": order.type}, PartnerCreateCounterparty if of_partner else CreateCounterparty
    )


def _at_columns(errors: Collection[FieldError], columns: Collection[str]) -> list[FieldError]:
    """Return errors of a body at the columns that its fields come from."""
    found = []
    for each in errors:
        column = each.loc[1] if each.loc[1] in columns else each.loc[-1]
        found.append(FieldError(("body", column), each.msg, each.type))
    return found
