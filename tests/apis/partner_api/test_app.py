"""What holds for every operation of the whole application: foreign ids are not there."""

import re

import pytest
from tests.support.cards import SHIPPING
from tests.support.partner_desk import UNKNOWN

from billfold.apis.partner_api import partner_operations
from billfold.http.operations import OPEN

NAME = re.compile(r"\{(\w+)\}")
OPERATIONS = sorted(
    (each.method, each.path)
    for each in partner_operations()
    if NAME.search(each.path) and "{cusip}" not in each.path and not each.takes_file and OPEN not in each.access
)
BODIES = {
    ("POST", "agreement-consent"): {"version": "2025-06-01", "timestamp": "2025-06-02T09:00:00Z"},
    ("POST", "pockets"): {"pocket_name": "x", "deposit_strategy_id": "UST-4W"},
    ("POST", "portals"): {"name": "x"},
    ("POST", "counterparties"): {
        "type": "on_us",
        "counterparty_name": {"type": "business", "business_name": "x"},
        "account_number": "700000000000",
    },
    ("POST", "verify-micro-deposits"): {"amounts": [11, 22]},
    ("POST", "ach-originating"): {"counterparty_id": UNKNOWN, "direction": "CREDIT", "amount_usdc": 1},
    ("POST", "transfer_id"): {"move": "approve"},
    ("POST", "preview"): {
        "transfer": {
            "id": UNKNOWN,
            "type": "ON_US",
            "origin_pocket_id": UNKNOWN,
            "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_00},
            "details": {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": UNKNOWN},
            "description": "x",
        },
        "reviewers": [],
    },
    ("POST", "wires"): {"counterparty_id": UNKNOWN, "amount_usdc": 1_00},
    ("POST", "recover"): {"since": "2025-06-02T09:00:00Z"},
    ("POST", "replay-missing"): {"since": "2025-06-02T09:00:00Z"},
    ("POST", "resend"): {"event_id": UNKNOWN},
    ("POST", "link-token"): {"client_name": "x", "redirect_uri": "https://x.example/"},
    ("POST", "linking-provider"): {"public_token": "x", "accounts": [{"id": "x"}]},
    ("POST", "virtual-cards"): {"public_key": "x"},
    ("POST", "card_id"): {"public_key": "x"},
    ("POST", "card-orders"): {"name_on_card": "x", "shipping_address": SHIPPING},
    ("POST", "formats"): {"output_formats": ["CSV"]},
    ("POST", "pin"): {"encrypted_pin": "eA=="},
    ("PATCH", "status"): {"card_status": "ONLINE"},
    ("PUT", "limits"): {"daily": 1_00},
    ("PATCH", "portal_id"): {"name": "x"},
    ("PATCH", "subscription_id"): {"description": "x"},
    ("PATCH", "pocket_id"): {"name": "x"},
    ("PATCH", "counterparty_id"): {"display_name": "x"},
    ("PATCH", "customer_id"): {"email": "a@example.org"},
    ("PATCH", "application_id"): {"name": "x"},
    ("PATCH", "related_party_application_id"): {"title": "x"},
}


def body_of(method, path):
    """Return a body that is well formed for the operation."""
    if method == "GET":
        return b""
    last = path.rstrip("/").rsplit("/", 1)[1].strip("{}")
    return BODIES.get((method, last), b"{}")


def test_all_operations_on_named_things_are_tried():
    assert len(OPERATIONS) >= 35


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_an_id_of_nobody_is_404_and_text_that_is_no_id_422(partner_desk, method, path):
    names = NAME.findall(path)
    nobody = NAME.sub(UNKNOWN, path)
    await partner_desk.refused(method, nobody, body_of(method, path), status=404, code="not-found")
    text = NAME.sub("not-an-id", path)
    await partner_desk.invalid(method, text, body_of(method, path), loc=f"path.{names[0]}")
    shouted = NAME.sub(UNKNOWN.replace("-", ""), path)
    if names != ["trace_id"]:  # which headers and problems write without hyphens
        await partner_desk.invalid(method, shouted, body_of(method, path), loc=f"path.{names[0]}")


@pytest.mark.parametrize(("method", "path"), [each for each in OPERATIONS if each[0] == "GET"])
async def test_a_query_name_that_is_not_known_is_refused(partner_desk, method, path):
    asked = NAME.sub(UNKNOWN, path)
    await partner_desk.invalid(method, asked, filters={"colour": "red"}, loc="query.colour")


async def test_the_bank_says_that_it_is_there(partner_desk):
    answer = await partner_desk.client.http.get("/health")
    assert (answer.status_code, answer.text) == (200, "OK")
