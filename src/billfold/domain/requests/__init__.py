"""Dual control: what one person requests and others decide.

Owns transfer requests, approval rules, authorization requests (sensitive changes that need a second
person) and every review of them. Never moves money: commands of the engine carry out what was
approved, under the request's id.
"""

from billfold.domain.requests.approval_rules import (
    get_rule,
    list_rules,
    terms_for_change,
)
from billfold.domain.requests.approved import Approvals, Approved
from billfold.domain.requests.changes import (
    APPLY,
    ask,
    ask_for_rule,
    confirm_as_operator,
    decide_change,
    get_change,
    list_changes,
    note_applied,
)
from billfold.domain.requests.changes import EXPIRE as EXPIRE_CHANGE
from billfold.domain.requests.deciding import who_is
from billfold.domain.requests.orders import (
    MOST_CENTS,
    InternalReallocation,
    OnUsOrder,
    Order,
    PeerToPeer,
    RequestContent,
    WireOrder,
    content_of,
)
from billfold.domain.requests.payees import get_payee, snapshot_of, takes_unverified
from billfold.domain.requests.reads import (
    Filters,
    find_request,
    get_request,
    list_requests,
    people_named,
    possible_reviewers,
    transactions_of,
    voices_about,
)
from billfold.domain.requests.rules import approvals_in, check_rule, may_review
from billfold.domain.requests.step_up import asks_step_up, set_step_up
from billfold.domain.requests.types import (
    EXECUTE,
    EXPIRE,
    Action,
    ChangeRequest,
    Decision,
    Principal,
    Reviewer,
    Rule,
    Terms,
    TransferRequest,
    TransferType,
    Voice,
)

__all__ = [
    "APPLY",
    "EXECUTE",
    "EXPIRE",
    "EXPIRE_CHANGE",
    "MOST_CENTS",
    "Action",
    "Approvals",
    "Approved",
    "ChangeRequest",
    "Decision",
    "Filters",
    "InternalReallocation",
    "OnUsOrder",
    "Order",
    "PeerToPeer",
    "Principal",
    "RequestContent",
    "Reviewer",
    "Rule",
    "Terms",
    "TransferRequest",
    "TransferType",
    "Voice",
    "WireOrder",
    "approvals_in",
    "ask",
    "ask_for_rule",
    "asks_step_up",
    "check_rule",
    "confirm_as_operator",
    "content_of",
    "decide_change",
    "find_request",
    "get_change",
    "get_payee",
    "get_request",
    "get_rule",
    "list_changes",
    "list_requests",
    "list_rules",
    "may_review",
    "note_applied",
    "people_named",
    "possible_reviewers",
    "set_step_up",
    "snapshot_of",
    "takes_unverified",
    "terms_for_change",
    "transactions_of",
    "voices_about",
    "who_is",
]
