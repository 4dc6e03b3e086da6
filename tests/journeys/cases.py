"""Every operation of both APIs as somebody would call it who has nothing to do with it.

A route that is not in these tables makes `test_every_door.py` fail.
"""

import re
from typing import Any

from tests.support import payees

PARTNER_OPEN = {
    ("POST", "/api/v1/login"),
    ("POST", "/token"),
    ("GET", "/docs"),
    ("GET", "/docs/errors"),
    ("GET", "/docs/errors.md"),
    ("GET", "/docs/errors/{page}"),
    ("GET", "/health"),
    ("GET", "/openapi.json"),
}
STREAMS = {("GET", "/api/v1/events/stream")}
"""What does not end by itself, and is tested beside its module (`test_event_stream.py`)."""
UPLOADS = {
    ("POST", "/api/v1/documents/{document_type}"),
    ("POST", "/api/v2/documents/{document_id}"),
    ("POST", "/api/v1/documents/{document_id}"),
    ("POST", "/api/v1/customers/{customer_id}/documents/{document_type}/file"),
}
"""What takes a file, of both APIs; tested beside its module (`test_documents.py`)."""
CUSTOMER_OPEN = PARTNER_OPEN - {("POST", "/api/v1/login"), ("POST", "/token")} | {
    ("GET", "/agreements/{version}/{file}")
}
"""What needs no token."""

_NEW_POCKET = {"pocket_name": "x", "deposit_strategy_id": "UST-4W"}
TOLD = {"url": "https://93.184.215.14/", "events": ["transfers.on-us.success"], "shared_secret": "0123456789abcdef"}
_SINCE = {"since": "2025-06-02T09:00:00-04:00"}
_ONE_TOLD = "/api/v1/subscriptions/{subscription_id}"
_NAME, _LEFT = {"name": "x"}, {"status": "CLOSED", "closure_reason": "INACTIVITY"}
_NOTIFIED = "/api/v1/notifications/{notification_id}"
_AUDIENCE = "/api/v1/notification-audiences/FUNDS_RECEIVED"

_PERSON = {"first_name": "x", "last_name": "x", "email": "x@northwind.example", "role": "VIEWER"}
NOBODYS_KEYS = [
    f"-----BEGIN PUBLIC KEY-----\n{each}\n-----END PUBLIC KEY-----"
    for each in (
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
        "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=",
    )
]
"""Public keys as PEM (Ed25519) that no test signs with."""
_TEAM, _PROGRAM = "/api/v1/team", "/api/v1/team/service-users/{member_id}"

_ASKED, _ASKED_ONE = "/api/v1/transfer-requests", "/api/v1/transfer-requests/{transfer_id}"
_ORDER = {
    "transfer": {
        "id": "5d0f4a52-6d0b-4c8e-9a57-2f3f2f6f1c11",
        "type": "ON_US",
        "origin_pocket_id": "{pocket_id}",
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_00},
        "details": {"type": "PEER_TO_PEER", "destination_counterparty_id": "{counterparty_id}"},
    },
    "reviewers": [],
}

_RULE, _CHANGE = "/api/v1/approval-rules", "/api/v1/authorization-requests"

CUSTOMER: dict[tuple[str, str], tuple[str, Any]] = {
    ("GET", "/api/v1/agreements"): ("agreements.read", None),
    ("GET", "/api/v1/customer"): ("customer.read", None),
    ("GET", "/api/v1/events"): ("subscriptions.read", None),
    ("GET", "/api/v1/events/types"): ("subscriptions.read", None),
    ("GET", _TEAM): ("team.read", None),
    ("POST", f"{_TEAM}/invite"): ("team.write", _PERSON),
    ("POST", f"{_TEAM}/service-users"): (
        "team.write",
        {"name": "x", "scopes": ["team.read"], "public_key": NOBODYS_KEYS[0]},
    ),
    ("GET", _PROGRAM): ("team.read", None),
    ("GET", f"{_PROGRAM}/keys"): ("team.read", None),
    ("POST", f"{_PROGRAM}/keys"): ("team.write", {"public_key": NOBODYS_KEYS[1]}),
    ("POST", f"{_PROGRAM}/keys/rotate"): ("team.write", {"public_key": NOBODYS_KEYS[2]}),
    ("DELETE", f"{_PROGRAM}/keys/{{key_id}}"): ("team.write", None),
    ("GET", f"{_TEAM}/{{member_id}}"): ("team.read", None),
    ("PUT", f"{_TEAM}/{{member_id}}"): ("team.write", {"role": "VIEWER"}),
    ("DELETE", f"{_TEAM}/{{member_id}}"): ("team.write", None),
    ("POST", f"{_TEAM}/{{member_id}}/invite"): ("team.write", None),
    ("DELETE", f"{_TEAM}/{{member_id}}/invite"): ("team.write", None),
    ("GET", "/api/v1/events/{event_id}"): ("subscriptions.read", None),
    ("GET", "/api/v1/subscriptions"): ("subscriptions.read", None),
    ("POST", "/api/v1/subscriptions"): ("subscriptions.write", TOLD),
    ("GET", _ONE_TOLD): ("subscriptions.read", None),
    ("PATCH", _ONE_TOLD): ("subscriptions.write", {"description": "x"}),
    ("DELETE", _ONE_TOLD): ("subscriptions.write", None),
    ("GET", f"{_ONE_TOLD}/attempts"): ("subscriptions.read", None),
    ("POST", f"{_ONE_TOLD}/recover"): ("subscriptions.write", _SINCE),
    ("POST", f"{_ONE_TOLD}/replay-missing"): ("subscriptions.write", _SINCE),
    ("POST", f"{_ONE_TOLD}/resend"): ("subscriptions.write", {"event_id": "{event_id}"}),
    ("POST", f"{_ONE_TOLD}/send-example"): ("subscriptions.write", {}),
    ("GET", "/api/v1/notifications"): ("notifications.read", None),
    ("GET", _NOTIFIED): ("notifications.read", None),
    ("PATCH", _NOTIFIED): ("notifications.write", {"status": "READ"}),
    ("GET", "/api/v1/notification-audiences"): ("notifications.read", None),
    ("GET", _AUDIENCE): ("notifications.read", None),
    ("PUT", _AUDIENCE): ("notifications.write", {"roles": ["ADMIN"], "user_ids": []}),
    ("DELETE", _AUDIENCE): ("notifications.write", None),
    ("GET", "/api/v1/team/audit-logs"): ("team.read", None),
    ("GET", "/api/v1/team/audit-logs.csv"): ("team.read", None),
    ("GET", "/api/v1/team/members/{member_id}/audit-logs"): ("team.read", None),
    ("GET", _RULE): ("approval_rules.read", None),
    ("POST", _RULE): ("approval_rules.write", {"name": "x", "required_approvals": 1}),
    ("GET", f"{_RULE}/{{rule_id}}"): ("approval_rules.read", None),
    ("PATCH", f"{_RULE}/{{rule_id}}"): ("approval_rules.write", _NAME),
    ("DELETE", f"{_RULE}/{{rule_id}}"): ("approval_rules.write", None),
    ("GET", _CHANGE): ("authorization_requests.read", None),
    ("GET", f"{_CHANGE}/{{request_id}}"): ("authorization_requests.read", None),
    ("PATCH", f"{_CHANGE}/{{request_id}}/status"): ("authorization_requests.write", {"status": "DENIED"}),
    ("GET", _ASKED): ("transfers.read", None),
    ("POST", _ASKED): ("transfers.write", _ORDER),
    ("GET", f"{_ASKED}/reviewers"): ("transfers.read", None),
    ("GET", _ASKED_ONE): ("transfers.read", None),
    ("PATCH", _ASKED_ONE): ("transfers.write", {"reviewers": []}),
    ("DELETE", _ASKED_ONE): ("transfers.write", None),
    ("PATCH", f"{_ASKED_ONE}/status"): ("transfers.write", {"status": "APPROVED"}),
    ("GET", "/api/v1/trades"): ("pockets.read", None),
    ("GET", "/api/v1/wires"): ("transfers.read", None),
    ("GET", "/api/v1/wires/{wire_id}"): ("transfers.read", None),
    ("GET", "/api/v1/trades.csv"): ("pockets.read", None),
    ("GET", "/api/v1/user"): ("profile", None),
    ("GET", "/api/v1/user/memberships"): ("profile", None),
    ("GET", "/api/v2/earnings"): ("pockets.read", None),
    ("GET", "/api/v2/pockets"): ("pockets.read", None),
    ("POST", "/api/v2/pockets"): ("pockets.write", _NEW_POCKET),
    ("GET", "/api/v2/pockets/{pocket_id}"): ("pockets.read", None),
    ("PATCH", "/api/v2/pockets/{pocket_id}"): ("pockets.write", _NAME),
    ("GET", "/api/v2/pockets/{pocket_id}/earnings"): ("pockets.read", None),
    ("GET", "/api/v2/pockets/{pocket_id}/portals"): ("pockets.read", None),
    ("POST", "/api/v2/pockets/{pocket_id}/portals"): ("pockets.write", _NAME),
    ("PATCH", "/api/v2/pockets/{pocket_id}/portals/{portal_id}"): ("pockets.write", _NAME),
    ("GET", "/api/v2/pockets/{pocket_id}/portals/{portal_id}/funding-instructions"): ("pockets.read", None),
    ("GET", "/api/v2/portals"): ("pockets.read", None),
    ("GET", "/api/v2/trades"): ("pockets.read", None),
    ("GET", "/api/v2/trading-strategies"): ("pockets.read", None),
    ("GET", "/api/v2/transactions"): ("pockets.read", None),
    ("GET", "/api/v2/transactions.csv"): ("pockets.read", None),
    ("GET", "/api/v2/transactions/{transaction_id}"): ("pockets.read", None),
}
"""(method, path) -> the one scope that opens it, and a body that is well formed."""

_COUNTERPARTY = {
    "type": "on_us",
    "counterparty_name": {"type": "business", "business_name": "x"},
    "account_number": "700000000000",
}
_PAYEE, _DEPOSITS = "/api/v2/counterparties/{counterparty_id}", {"amounts": [11, 22]}
CUSTOMER |= {
    ("GET", "/api/v2/counterparties"): ("transfers.read", None),
    ("POST", "/api/v2/counterparties"): ("transfers.write", payees.wallet()),
    ("GET", _PAYEE): ("transfers.read", None),
    ("GET", "/api/v2/documents/{document_id}"): ("onboarding.read", None),
    ("PATCH", _PAYEE): ("transfers.write", {"display_name": "x"}),
    ("POST", f"{_PAYEE}/verify-micro-deposits"): ("transfers.write", _DEPOSITS),
}
_DEPOSITS_PATH = "/counterparties/{counterparty_id}/verify-micro-deposits"
_TRANSFER = {
    "type": "PEER_TO_PEER",
    "from_account": {"id": "{pocket_id}", "type": "SERVICE_ACCOUNT"},
    "counterparty_id": "{counterparty_id}",
    "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1},
}
_OF_CUSTOMER, _OF_POCKET = "/api/v2/customers/{customer_id}", "/api/v2/pockets/{pocket_id}"
_OLDER, _ACCOUNT = "/api/v1/customers/{customer_id}", "/api/v1/service-accounts/{account_id}"
_BOX = "/api/v1/sandbox"

PARTNER = {
    **dict.fromkeys(
        [
            ("GET", "/api/v1/customers"),
            ("GET", _OLDER),
            ("GET", f"{_OLDER}/service-accounts"),
            ("GET", f"{_OLDER}/portals"),
            ("GET", f"{_OLDER}/trades"),
            ("GET", f"{_OLDER}/transactions"),
            ("GET", _ACCOUNT),
            ("GET", f"{_ACCOUNT}/portals"),
            ("GET", f"{_ACCOUNT}/portals/{{portal_id}}"),
            ("GET", f"{_ACCOUNT}/trades"),
            ("GET", f"{_ACCOUNT}/transactions"),
            ("GET", f"{_ACCOUNT}/transactions/{{transaction_id}}"),
            ("GET", f"{_ACCOUNT}/ach-originating"),
            ("GET", f"{_OLDER}/ach-originating"),
            ("GET", f"{_ACCOUNT}/ach-originating/{{transfer_id}}"),
            ("GET", "/api/v1/transfers/on-us/{transfer_id}"),
            ("GET", f"{_OF_CUSTOMER}/counterparties"),
            ("GET", f"{_OF_CUSTOMER}/counterparties/{{counterparty_id}}"),
            ("GET", f"{_OF_CUSTOMER}/pockets"),
            ("GET", f"{_OF_CUSTOMER}/pockets/{{pocket_id}}"),
            ("GET", f"{_OF_CUSTOMER}/portals"),
            ("GET", f"{_OF_CUSTOMER}/trades"),
            ("GET", f"{_OF_CUSTOMER}/transactions"),
            ("GET", "/api/v2/earnings"),
            ("GET", "/api/v2/pocket-configurations"),
            ("GET", "/api/v2/pockets"),
            ("GET", _OF_POCKET),
            ("GET", f"{_OF_POCKET}/earnings"),
            ("GET", f"{_OF_POCKET}/portals"),
            ("GET", f"{_OF_POCKET}/portals/{{portal_id}}"),
            ("GET", f"{_OF_POCKET}/portals/{{portal_id}}/funding-instructions"),
            ("GET", f"{_OF_POCKET}/trades"),
            ("GET", f"{_OF_POCKET}/transactions"),
            ("GET", f"{_OF_POCKET}/transactions/{{transaction_id}}"),
            ("GET", "/api/v2/trading-strategies"),
            ("GET", "/api/v2/transactions"),
            ("GET", "/api/v1/wires"),
            ("GET", "/api/v1/wires/{wire_id}"),
            ("GET", f"{_BOX}/clock"),
            ("GET", "/api/v1/events"),
            ("GET", "/api/v1/events/types"),
            ("GET", "/api/v1/events/{event_id}"),
            ("GET", "/api/v1/subscriptions"),
            ("GET", _ONE_TOLD),
            ("GET", f"{_ONE_TOLD}/attempts"),
            ("DELETE", _ONE_TOLD),
            ("GET", "/api/v1/documents/{document_id}"),
            ("GET", f"{_OLDER}/counterparties"),
            ("GET", f"{_OLDER}/counterparties/{{counterparty_id}}"),
        ]
    ),
    ("PATCH", _OLDER): {"email": "a@example.org"},
    ("POST", "/api/v1/subscriptions"): TOLD,
    ("PATCH", _ONE_TOLD): {"description": "x"},
    **{("POST", f"{_ONE_TOLD}/{each}"): _SINCE for each in ("recover", "replay-missing")},
    ("POST", f"{_ONE_TOLD}/resend"): {"event_id": "{event_id}"},
    ("POST", f"{_ONE_TOLD}/send-example"): {},
    ("POST", f"{_ACCOUNT}/portals"): _NAME,
    ("PATCH", f"{_ACCOUNT}/portals/{{portal_id}}"): _NAME,
    ("POST", f"{_ACCOUNT}/portals/{{portal_id}}/close"): {},
    ("POST", "/api/v1/transfers/on-us"): _TRANSFER,
    ("POST", f"{_ACCOUNT}/ach-originating"): {
        "counterparty_id": "{counterparty_id}",
        "direction": "CREDIT",
        "amount_usdc": 1,
    },
    ("POST", f"{_BOX}/ach/entries"): {"portal_id": "{portal_id}", "direction": "DEBIT", "amount_usdc": 1},
    ("POST", f"{_BOX}/ach/submit"): {},
    ("POST", f"{_BOX}/ach/{{transfer_id}}"): {"move": "approve"},
    ("POST", f"{_OF_CUSTOMER}/counterparties"): _COUNTERPARTY,
    ("PATCH", f"{_OF_CUSTOMER}/counterparties/{{counterparty_id}}"): {"display_name": "x"},
    ("POST", f"{_OF_CUSTOMER}/counterparties/{{counterparty_id}}/verify-micro-deposits"): _DEPOSITS,
    ("POST", f"{_OF_CUSTOMER}/pockets"): _NEW_POCKET,
    ("PATCH", f"{_OF_CUSTOMER}/pockets/{{pocket_id}}"): _NAME,
    ("POST", f"{_OF_POCKET}/portals"): _NAME,
    ("PATCH", f"{_OF_POCKET}/portals/{{portal_id}}"): _NAME,
    ("POST", f"{_BOX}/clock/advance"): {"seconds": 1},
    ("POST", f"{_BOX}/clock/freeze"): {},
    ("POST", f"{_BOX}/clock/resume"): {},
    ("POST", f"{_BOX}/clock/run-to-next-event"): {},
    ("POST", f"{_BOX}/clock/set"): {"now": "2025-06-02T09:00:00-04:00"},
    ("POST", f"{_BOX}/customers"): _NAME,
    ("POST", f"{_BOX}/fund"): {"account_id": "{pocket_id}", "amount_usdc": 1_00, "count": 1},
    ("POST", f"{_BOX}/pockets/{{pocket_id}}"): {"real_time_yield": True},
    ("POST", f"{_BOX}/security-transfer"): {
        "account_id": "{pocket_id}",
        "direction": "IN",
        "cusip": "912797PT8",
        "quantity": 1,
    },
    ("POST", f"{_BOX}/webhook"): {
        "event_id": "8c2e6f1a-0d3b-4f7e-8a9c-5b1d2e3f4a61",
        "event_type": "trades.maturity",
        "timestamp": "2025-06-02T09:00:00-04:00",
        "customer_id": "{customer_id}",
        "payload": {"trade_id": "{transfer_id}", "pocket_id": "{pocket_id}", "cusip": "912797PX6"},
    },
    ("POST", f"{_ACCOUNT}/wires"): {"counterparty_id": "{counterparty_id}", "amount_usdc": 1_00},
    **{
        ("POST", f"{_BOX}/wires/{{wire_id}}/{each}"): {}
        for each in ("submit", "acknowledge", "reject", "return", "request-return")
    },
    ("POST", f"{_OLDER}/counterparties/linking-provider/link-token"): {
        "client_name": "x",
        "redirect_uri": "https://x.example/",
    },
    ("POST", f"{_OLDER}/counterparties/linking-provider"): {
        "public_token": "public-sandbox-x",
        "accounts": [{"id": "x"}],
    },
    ("POST", f"{_OLDER}/counterparties/{{counterparty_id}}/linking-provider/verify"): {},
    ("POST", f"{_BOX}/counterparty-verification"): {"counterparty_id": "{awaited_id}", "status": "APPROVED"},
    ("POST", f"{_BOX}/wire"): {"portal_id": "{portal_id}", "amount_usdc": 1_00, "sender_name": "x"},
}
"""(method, path) -> a body that is well formed, None without one."""


def routes_of(app):
    """Return every (method, path) an application answers."""
    return {
        (each.method, (each.path.rstrip("/") or "/").replace("{notification_type}", "FUNDS_RECEIVED"))
        for each in app.operations
    }


def filled(value, names):
    """Return a path or a body with the names of things in their places."""
    if isinstance(value, str):
        for name, told in names.items():
            value = value.replace("{" + name + "}", told)
        return value
    if isinstance(value, dict):
        return {key: filled(each, names) for key, each in value.items()}
    return value


_MEANT = {
    f"{_ASKED_ONE}/status": {"transfer_id": "waiting_id"},
    _ASKED_ONE: {"transfer_id": "asked_id"},
    "/verify-micro-deposits": {"counterparty_id": "awaited_id"},
    "/{member_id}/invite": {"member_id": "invited_id"},
}


def names_at(path, names):
    """Return the names of things as a path means them: not every member is of the same kind."""
    for place, (name, known) in {
        f"{_ASKED_ONE}/status": ("transfer_id", "waiting_id"),
        _ASKED_ONE: ("transfer_id", "asked_id"),
        f"{_TEAM}/{{member_id}}/invite": ("member_id", "invited_id"),
        f"{_PAYEE}/verify-micro-deposits": ("counterparty_id", "awaited_id"),
        f"{_OF_CUSTOMER}{_DEPOSITS_PATH}": ("counterparty_id", "awaited_id"),
    }.items():
        if path == place:
            return names | {name: names[known]}
    if path.startswith(_PROGRAM):
        return names | {"member_id": names["program_id"]}
    return names


def names_something(path, body):
    """Tell whether an operation is on a thing that belongs to somebody."""
    return re.search(r"\{\w", f"{path} {body}") is not None


def as_published(path):
    """Return a path with its closing slash."""
    return path if path.endswith((".csv", "/")) else f"{path}/"
