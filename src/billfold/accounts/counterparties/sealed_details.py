"""The personal details of a counterparty: sealed where they come in, opened where they go out.

A sealed counterparty has `account_key` beside its account: the number as machines write it, by which rules compare.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import msgspec

from billfold.accounts.counterparties.rules.identifiers import compact
from billfold.accounts.counterparties.rules.verification_kinds import ACCOUNT_KEY
from billfold.accounts.counterparties.types import CounterpartyRow, Payee
from billfold.data_keys.data_key import DataKey, PartyField
from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.platform.crypto import is_sealed_text

_FIELDS: Final = MappingProxyType(
    {
        "account_number": PartyField.ACCOUNT,
        "identifier": PartyField.ACCOUNT,
        "wallet_address": PartyField.ACCOUNT,
        "address": PartyField.ADDRESS,
        "wire_instructions": PartyField.TEXT,
    }
)


def seal_details(data_key: DataKey, kind: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details as they are stored. An address of this bank stays legible: payments find their Pocket by it."""
    if kind == "on_us":
        return dict(details)
    sealed = {name: field.seal(data_key, _text(details[name])) for name, field in _FIELDS.items() if name in details}
    number = details.get("identifier") or details.get("account_number")
    if number is not None:
        sealed[ACCOUNT_KEY] = PartyField.ACCOUNT.seal(data_key, compact(number))
    return {**details, **sealed}


def open_details(data_key: DataKey | None, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details as they came in; None stands for what was destroyed with its key."""
    opened = {name: value for name, value in details.items() if name != ACCOUNT_KEY}
    for name in _FIELDS.keys() & opened.keys():
        if isinstance(opened[name], str):
            opened[name] = _FIELDS[name].open(data_key, opened[name])
    if isinstance(address := opened.get("address"), str):
        opened["address"] = msgspec.json.decode(address)
    return opened


def open_order(data_key: DataKey | None, order: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an `AddCounterparty` with its details and its holder's address in plain text."""
    address = order.get("holder_address")
    return {
        **order,
        "details": open_details(data_key, order["details"]),
        "holder_address": address and PartyField.ADDRESS.open(data_key, address),
    }


def are_sealed(kind: str, details: Mapping[str, Any]) -> bool:
    """Tell whether stored details are sealed: no account number has the form of a sealed text."""
    accounts = [details[name] for name, field in _FIELDS.items() if field is PartyField.ACCOUNT and name in details]
    return kind == "on_us" or any(map(is_sealed_text, accounts))


async def open_counterparties(bank: Bank, rows: Sequence[CounterpartyRow]) -> list[CounterpartyRow]:
    """Return counterparties with their details in plain text."""
    ring = await bank.ports[DataKeys].load(bank.pool, {row.customer_id for row in rows})
    return [_opened(row, ring.get(row.customer_id)) for row in rows]


async def open_payees(bank: Bank, payees: Sequence[tuple[UUID, Payee]]) -> list[tuple[UUID, Payee]]:
    """Return the payees of customers with their details in plain text."""
    ring = await bank.ports[DataKeys].load(bank.pool, {customer_id for customer_id, _ in payees})
    return [
        (customer_id, msgspec.structs.replace(payee, details=open_details(ring.get(customer_id), payee.details)))
        for customer_id, payee in payees
    ]


def _opened(row: CounterpartyRow, data_key: DataKey | None) -> CounterpartyRow:
    details = open_details(data_key, msgspec.json.decode(row.details))
    number = details.get("account_number") or details.get("identifier")
    return msgspec.structs.replace(row, details=msgspec.json.encode(details).decode(), account_number=number)


def _text(value: str | Mapping[str, str]) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
