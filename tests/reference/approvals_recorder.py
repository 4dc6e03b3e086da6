"""Plays what one member asks for and another decides."""

from tests.reference.recorder import OPERATOR
from tests.support.whole_bank import SEED

from billfold.platform import ids

ASKED = "/api/v1/transfer-requests/"


async def play_approvals(r, other, pocket):
    """Ask for a transfer, change it, have `other` approve it, and take another one back."""
    new = {"pocket_name": "Payroll", "deposit_strategy_id": "UST-4W"}
    to = (await r.play("-", "POST", "/api/v2/pockets/", body=new))["id"]
    order = {
        "id": str(ids.derive(SEED, OPERATOR, 2201)),
        "type": "ON_US",
        "origin_pocket_id": pocket,
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_000_00},
        "details": {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": to},
        "description": "Wages of June",
    }
    body = {"transfer": order, "reviewers": []}
    await r.play("list_transfer_reviewers", "GET", f"{ASKED}reviewers/")
    one = (await r.play("create_transfer_request", "POST", ASKED, body=body))["id"]
    dearer = order | {"amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_200_00}}
    await r.play("update_transfer_request", "PATCH", f"{ASKED}{one}/", body={"transfer": dearer})
    mine, r.client = r.client, other
    said = {"status": "APPROVED", "comment": "As planned"}
    await r.play("decide_transfer_request", "PATCH", f"{ASKED}{one}/status/", body=said)
    second = order | {"id": str(ids.derive(SEED, OPERATOR, 2202))}
    two = (await r.play("-", "POST", ASKED, body={"transfer": second, "reviewers": []}))["id"]
    r.client = mine
    await _play_rules(r, other)
    await other.http.aclose()
    await r.play("get_transfer_request", "GET", f"{ASKED}{one}/")
    await r.play("cancel_transfer_request", "DELETE", f"{ASKED}{two}/")
    await r.play("list_transfer_requests", "GET", ASKED)


async def _play_rules(r, other):
    """Ask for a rule, have `other` confirm it, change it and ask for its end."""
    rules, changes = "/api/v1/approval-rules/", "/api/v1/authorization-requests/"
    new = {
        "name": "Large wires",
        "transfer_types": ["WIRE"],
        "min_amount_usdc": 100_000_00,
        "required_approvals": 2,
        "approver_roles": ["MANAGER", "ADMIN"],
        "ordered": True,
    }
    asked = await r.play("create_approval_rule", "POST", rules, body=new)
    r.name(asked["id"], asked["resource_id"])
    change, rule = f"{changes}{asked['id']}/", f"{rules}{asked['resource_id']}/"
    mine, r.client = r.client, other
    said = {"status": "APPROVED", "comment": "As agreed with the board"}
    await r.play("decide_authorization_request", "PATCH", f"{change}status/", body=said)
    r.client = mine
    await r.play("get_authorization_request", "GET", change)
    await r.play("list_authorization_requests", "GET", changes)
    await r.play("get_approval_rule", "GET", rule)
    await r.play("list_approval_rules", "GET", rules)
    for name, method, body in (
        ("update_approval_rule", "PATCH", {"required_approvals": 2, "enabled": False}),
        ("delete_approval_rule", "DELETE", None),
    ):
        r.name((await r.play(name, method, rule, body=body))["id"])
