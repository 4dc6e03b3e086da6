"""The payee of a request: whether it may be paid, and is still the approved one."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from billfold.accounts.counterparties import store as counterparty_store
from billfold.accounts.counterparties.rules import verification_kinds
from billfold.accounts.counterparties.sealed_details import open_details
from billfold.accounts.counterparties.types import Payee
from billfold.accounts.customers.store import list_features, list_owners
from billfold.accounts.profiles import open_profiles
from billfold.approvals.transfer_orders import RequestContent, content_of
from billfold.approvals.types import TransferRequest
from billfold.data_keys.data_key import DataKey
from billfold.data_keys.keys import DataKeys
from billfold.ledger.bank import Bank
from billfold.ledger.customers import CustomerRow
from billfold.platform.database.connection import Connection
from billfold.platform.errors import NotFound, Refused


async def get_payee(conn: Connection, customer_id: UUID, content: RequestContent) -> dict[str, Any]:
    """Return the counterparty that is paid, as the approved content stores it.

    Raises NotFound, Refused `sanction-screen-failed`, `counterparty-type-mismatch`, `counterparty-not-verified`.
    """
    assert content.counterparty_id is not None
    found = await counterparty_store.find_payees(conn, [customer_id], [content.counterparty_id])
    if not found:
        raise NotFound("There is no such counterparty.")
    payee: Payee = found[0][2]
    unverified_wires = await allows_unverified_wires(conn, customer_id)
    verification_kinds.check_payable(payee, content.type, unverified_wires=unverified_wires)
    stored = ("counterparty_name", "details", "target_pocket_id", "type")
    snapshot: dict[str, Any] = msgspec.to_builtins({name: getattr(payee, name) for name in stored})
    return snapshot


async def check_same_payee(
    conn: Connection, customer_id: UUID, content: RequestContent, data_key: DataKey | None
) -> None:
    """Refuse a payee that may no longer be paid, or has changed. Raises as `get_payee`, Refused `content-changed`.

    The key is the customer's: a payee of an earlier release may have been sealed since.
    """
    if content.counterparty_id is None:
        return
    now, then = await get_payee(conn, customer_id, content), content.payee or {}
    if now != then and _opened(now, data_key) != _opened(then, data_key):
        raise Refused("content-changed", "The counterparty has changed since the request. Send a new request.")


def _opened(payee: Mapping[str, Any], data_key: DataKey | None) -> dict[str, Any]:
    return {**payee, "details": open_details(data_key, payee.get("details", {}))}


async def list_registered_owners(bank: Bank, requests: Sequence[TransferRequest]) -> dict[UUID, CustomerRow]:
    """Return by request who owns the account it pays, where that is one of this bank."""
    ring = await bank.ports[DataKeys].load(bank.pool, {each.customer_id for each in requests})
    paid = {
        each.request_id: _entry_of(_opened(payee, ring.get(each.customer_id)), bank.settings.bank_routing_number)
        for each in requests
        if (payee := content_of(each).payee) is not None
    }
    owners = await list_owners(bank.pool, {entry for entry in paid.values() if entry is not None})
    opened = dict(zip(owners, await open_profiles(bank, list(owners.values())), strict=True))
    return {request_id: opened[entry] for request_id, entry in paid.items() if entry in opened}


def _entry_of(payee: Mapping[str, Any], own_routing_number: str) -> tuple[str, str] | None:
    """Return what the account of a payee is in the directory, None for one of another bank."""
    if payee["target_pocket_id"] is not None:
        return "pocket", payee["target_pocket_id"]
    account = verification_kinds.account_of(payee["details"])
    if account is None or account.bank != own_routing_number:
        return None
    return "account", f"{account.bank}:{account.number}"


async def allows_unverified_wires(conn: Connection, customer_id: UUID) -> bool:
    """Tell whether wires of this customer may go to unverified counterparties."""
    return "unverified_wires" in await list_features(conn, customer_id)
