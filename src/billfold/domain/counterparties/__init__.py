"""Whom customers pay, how it is shown that an account is theirs, and the rule of the money.

Owns every read of a counterparty, the checks of its numbers, and `may_be_paid`. Never links,
verifies or unlinks one: that is a flow's work.
"""

from billfold.domain.counterparties.peers import Link, LinkedPeer, find_peers
from billfold.domain.counterparties.reads import (
    documents_of,
    find_counterparty,
    get_counterparty,
    list_counterparties,
    list_in_review,
    look_up,
    payee_in,
)
from billfold.domain.counterparties.rules import (
    Account,
    account_of,
    is_same_account,
    is_same_name,
    may_be_paid,
    must_be_payable,
)
from billfold.domain.counterparties.types import (
    CounterpartyRow,
    CounterpartyStatus,
    Payee,
    one_line,
)

__all__ = [
    "Account",
    "CounterpartyRow",
    "CounterpartyStatus",
    "Link",
    "LinkedPeer",
    "Payee",
    "account_of",
    "documents_of",
    "find_counterparty",
    "find_peers",
    "get_counterparty",
    "is_same_account",
    "is_same_name",
    "list_counterparties",
    "list_in_review",
    "look_up",
    "may_be_paid",
    "must_be_payable",
    "one_line",
    "payee_in",
]
