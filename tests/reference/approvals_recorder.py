"""Plays what one member asks for and another decides."""

from tests.reference.recorder import OPERATOR
from tests.whole_bank import SEED

from billfold.kit import ids

ASKED = "/api/v1/transfer-requests/"


async def play_approvals(r, other, pocket):
    """Ask for a transfer, change it, have `other` approve it, and take another one back."""
    new = {"pocket_name": "Payroll", "deposit_strategy_id": "UST-4W"}
    to = (await r.play("-", "POST", "/api/v2/pockets/", new))["id"]
    order = {
        "id": str(ids.derive(SEED, OPERATOR, 2201)), "type": "ON_US", "origin_pocket_id": pocket,
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_000_00},
        "details": {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": to},
        "description": "Wages of June",
    }  # fmt: skip
    body = {"transfer": order, "reviewers": []}
    await r.play("list_transfer_reviewers", "GET", f"{ASKED}reviewers/")
    one = (await r.play("create_transfer_request", "POST", ASKED, body))["id"]
    dearer = order | {"amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_200_00}}
    await r.play("update_transfer_request", "PATCH", f"{ASKED}{one}/", {"transfer": dearer})
    mine, r.client = r.client, other
    said = {"status": "APPROVED", "comment": "As planned"}
    await r.play("decide_transfer_request", "PATCH", f"{ASKED}{one}/status/", said)
    second = order | {"id": str(ids.derive(SEED, OPERATOR, 2202))}
    two = (await r.play("-", "POST", ASKED, {"transfer": second, "reviewers": []}))["id"]
    await other.http.aclose()
    r.client = mine
    await r.play("get_transfer_request", "GET", f"{ASKED}{one}/")
    await r.play("cancel_transfer_request", "DELETE", f"{ASKED}{two}/")
    await r.play("list_transfer_requests", "GET", ASKED)
