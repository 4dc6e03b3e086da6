"""The verification a counterparty begins with, and the check that money may move. Pure."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

from billfold.accounts.counterparties.names import NameMatch, mask_name, match_payee
from billfold.accounts.counterparties.rules.identifiers import compact
from billfold.accounts.counterparties.types import CounterpartyStatus, Payee, SanctionsStatus
from billfold.platform.errors import Refused

CONFIRMATION_ATTEMPTS_MAX: Final = 3
"""Number of wrong attempts to confirm micro-deposits that end a verification."""
WIRE_VERIFICATION_PERIOD: Final = timedelta(days=90)
"""Time limit for an incoming wire."""
ACCOUNT_KEY: Final = "account_key"
"""In sealed details, the normalized account number, sealed: accounts are compared by it."""

RAILS: Final[Mapping[str, frozenset[str]]] = {
    "ACH": frozenset({"ach"}),
    "ON_US": frozenset({"on_us"}),
    "USDC": frozenset({"crypto_wallet_address"}),
    "WIRE": frozenset({"wire", "international_wire"}),
}
"""Types of counterparty that each rail can reach."""

_DESCRIPTIONS: Final = {
    "incoming_wire": "A wire from this account is awaited for 90 days.",
    "linking_provider": "The account was linked at its own bank.",
    "micro_deposits": "Two small deposits are sent to the account; their amounts prove it.",
    "name_match": "The name is compared with that of the account's owner.",
    "pre_verified": "The account is known to belong to the counterparty.",
    "supporting_documents": "Documents that show whose account it is are reviewed.",
    "unverified": "The owner of the account has not been verified.",
}
PROVIDER_STATUSES: Final[Mapping[str, str]] = {
    "PENDING_AUTOMATIC_VERIFICATION": "PENDING_REVIEW",
    "PENDING_MANUAL_VERIFICATION": "PENDING_REVIEW",
    "AUTOMATICALLY_VERIFIED": "APPROVED",
    "MANUALLY_VERIFIED": "APPROVED",
    "VERIFICATION_EXPIRED": "EXPIRED",
    "VERIFICATION_FAILED": "REJECTED",
}
"""Statuses of the linking provider, as verification statuses."""
_SANCTIONS_TEXTS: Final[Mapping[SanctionsStatus, str]] = {
    SanctionsStatus.PENDING: "The counterparty's name is being compared with sanctions lists.",
    SanctionsStatus.OPEN: "The counterparty's name may be on a sanctions list; the bank is reviewing it.",
    SanctionsStatus.CONFIRMED: "The counterparty is on a sanctions list.",
}
SANCTION_SCREEN_FAILED: Final = "SANCTION_SCREEN_FAILED"
"""The reason that ends a verification or a payment because of a sanctions list (contract 1.7)."""
_REVIEWED_KINDS: Final = frozenset({"incoming_wire", "micro_deposits", "supporting_documents"})
OTHER_SENDER: Final = "A wire came from the account under another name. The bank reviews the counterparty."
"""The reason why a wire from the account did not verify a counterparty."""
_HEAD_OFFICE = "X" * 3
NAME_CHECKS_MAX: Final = 20
"""Maximum number of mismatched names per day, because trial and error reveals the account's owner."""
_CHECK_RESULTS: Final = {
    NameMatch.MATCH: ("APPROVED", "The name is that of the account's owner."),
    NameMatch.CLOSE_MATCH: ("APPROVED", "The name is close to that of the account's owner. Compare them."),
    NameMatch.NO_MATCH: ("REJECTED", "The name is not that of the account's owner. Ask them how it is registered."),
}


class Account(NamedTuple):
    """An account anywhere, by its bank's number (ABA or BIC) and its own, normalized; sealed where rules compare it."""

    bank: str
    number: str


def payment_refusal(payee: Payee, rail: str, *, unverified_wires: bool) -> str | None:
    """Return why no money may move to or from a counterparty over a rail; None if it may.

    It must be LINKED or VERIFIED and not `unverified`; only wires may go to an unverified one,
    if the customer has the feature `unverified_wires` (contract 2.3).
    """
    if payee.type not in RAILS[rail]:
        return f"The counterparty is of type {payee.type}, which this payment cannot reach."
    if payee.status not in {"LINKED", "VERIFIED"}:
        return f"The counterparty is {payee.status}."
    if is_unverified(payee.verification["type"], rail, unverified_wires=unverified_wires):
        return "The counterparty is unverified."
    return None


def is_unverified(verification: str, rail: str, *, unverified_wires: bool) -> bool:
    """Return whether the kind of its verification keeps a counterparty from being paid over a rail."""
    # A wallet address is as the customer typed it, whatever earlier releases called that.
    unverified = {"unverified", "pre_verified"} if rail == "USDC" else {"unverified"}
    return verification in unverified and not (rail == "WIRE" and unverified_wires)


def check_sanctions(payee: Payee) -> None:
    """Raise Refused `sanction-screen-failed` unless the counterparty's names are clear."""
    if payee.sanctions != SanctionsStatus.CLEAR:
        raise Refused("sanction-screen-failed", _SANCTIONS_TEXTS[payee.sanctions])


def check_payable(payee: Payee, rail: str, *, unverified_wires: bool) -> None:
    """Raise Refused `sanction-screen-failed`, `counterparty-type-mismatch` or `counterparty-not-verified`."""
    check_sanctions(payee)
    reason = payment_refusal(payee, rail, unverified_wires=unverified_wires)
    if reason is not None:
        other = payee.type not in RAILS[rail]
        raise Refused("counterparty-type-mismatch" if other else "counterparty-not-verified", reason)


def account_of(details: Mapping[str, Any]) -> Account | None:
    """Return the account in a counterparty's details; None for a wallet."""
    number = details.get("identifier") or details.get("account_number")
    bank = details.get("routing_number")
    return Account(bank, details.get(ACCOUNT_KEY) or compact(number)) if bank and number else None


def accounts_match(one: Account, other: Account) -> bool:
    """Return whether both are the same account. A BIC of 8 characters means the head office."""
    return one.number == other.number and _bank_key(one.bank) == _bank_key(other.bank)


def new_verification(
    kind: str, verification_id: str, *, document_ids: Iterable[str] = (), **more: object
) -> dict[str, Any]:
    """Return a new verification.

    `more` has the other fields of its kind: `deposits` (two amounts in cents) and `failures` of
    micro-deposits, `account` of one that was linked at its bank.
    """
    return {
        "id": verification_id,
        "type": kind,
        "status": "PENDING_REVIEW" if kind in _REVIEWED_KINDS else "NOT_REQUIRED",
        "description": _DESCRIPTIONS[kind],
        "document_ids": list(document_ids),
        **more,
    }


def check_name(name: Mapping[str, str], owner: str, on: date) -> dict[str, str]:
    """Return the stored part of a check against the owner's registered name, which is masked."""
    return {"outcome": match_payee(name, owner), "registered_name": mask_name(owner), "checked_on": on.isoformat()}


def checked_verification(verification_id: str, check: Mapping[str, str]) -> dict[str, Any]:
    """Return the verification by a name check, decided at once."""
    status, description = _CHECK_RESULTS[NameMatch(check["outcome"])]
    return close_verification(new_verification("name_match", verification_id), status, description)


def failed_name_checks(payees: Iterable[Payee], on: date) -> int:
    """Return how many mismatched names were tried that day."""
    checks = (payee.verification.get("name_check") for payee in payees)
    return sum(
        check is not None and check["checked_on"] == on.isoformat() and check["outcome"] != NameMatch.MATCH
        for check in checks
    )


def linked_verification(verification_id: str, account: Mapping[str, str]) -> dict[str, Any]:
    """Return the verification of an account that was linked at its own bank."""
    made = new_verification("linking_provider", verification_id, account=dict(account))
    return {**made, "status": PROVIDER_STATUSES[account["status"]]}


def initial_status(verification: Mapping[str, Any]) -> CounterpartyStatus:
    """Return the initial status of a counterparty: PENDING while its verification is."""
    if verification["status"] in {"REJECTED", "EXPIRED"}:
        return CounterpartyStatus.UNLINKED
    awaited = verification["status"] == "PENDING_REVIEW"
    return CounterpartyStatus.PENDING if awaited else CounterpartyStatus.LINKED


def close_verification(verification: Mapping[str, Any], status: str, description: str) -> dict[str, Any]:
    """Return a finished verification: APPROVED, REJECTED or EXPIRED."""
    return {**verification, "status": status, "description": description}


def _bank_key(number: str) -> str:
    return number if number.isdigit() else number.removesuffix(_HEAD_OFFICE)
