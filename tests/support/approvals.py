"""A company whose members request and approve transfers, over HTTP."""

import re
from uuid import UUID

from tests.support.payees import CONTOSO, NORTHWIND
from tests.support.whole_bank import DETAILS, EngineCommands

from billfold.approvals.store.approval_rules import put_rule, record_checksums, set_step_up
from billfold.approvals.types import Rule
from billfold.audit import record
from billfold.dual_control.decisions import confirm
from billfold.identity.operators import Operator
from billfold.ledger.types import Origin
from billfold.platform import ids

REQUESTS = "/api/v1/transfer-requests/"
RULES, CHANGES = "/api/v1/approval-rules/", "/api/v1/authorization-requests/"


async def status_of(customer_desk, request):
    shown = await customer_desk.get(path_of(request))
    return shown["status"], shown["transfer"]["execution_status"]


def on_us(origin, cents, *, to=None, counterparty=None, reviewers=(), request_id=None, **fields):
    """Return the body that asks for a transfer to another Pocket, or to a counterparty."""
    details = (
        {"type": "PEER_TO_PEER", "destination_counterparty_id": counterparty}
        if to is None
        else {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": to.id}
    )
    return {
        "transfer": {
            "id": request_id or str(ids.new()),
            "type": "ON_US",
            "origin_pocket_id": origin.id,
            "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": cents},
            "details": details,
            **fields,
        },
        "reviewers": list(reviewers),
    }


def path_of(request):
    """Return where a request is."""
    return f"{REQUESTS}{request['id']}/"


async def decide(customer_desk, request, status="APPROVED", *, answers=200, **fields):
    """Return the answer to a decision about a request."""
    path = f"{path_of(request)}status/"
    return (await customer_desk.ask("PATCH", path, {"status": status, **fields}, status=answers)).json()


async def refused(customer_desk, request, code, *, answers, status="APPROVED", **fields):
    """Check that a decision is refused with a problem of this code."""
    body = {"status": status, **fields}
    await customer_desk.refused("PATCH", f"{path_of(request)}status/", body, status=answers, code=code)


async def require_mfa(customer_desk, *, required=True):
    """Let the operator require a fresh proof of every reviewer of a team, or not."""
    async with _by_operator(customer_desk.bank, UUID(customer_desk.team.customer)) as audited_action:
        await set_step_up(audited_action, UUID(customer_desk.team.customer), required=required)


async def hold_roles(bank, customer_id, action="MEMBER_ROLE"):
    """Let the operator make a rule by which changes of a team need an approval."""
    await _put_rule(bank, customer_id, name="Roles", actions=(action,))


async def put_cap(bank, customer_id, cents):
    """Let the operator make a rule with a cap of cents per day."""
    await _put_rule(bank, customer_id, name="Small", daily_cap=cents)


async def _put_rule(bank, customer_id, **fields):
    now = await bank.now()
    rule = Rule(rule_id=ids.new(), required_approvals=1, created_at=now, updated_at=now, **fields)
    async with _by_operator(bank, customer_id) as audited_action:
        await put_rule(audited_action, customer_id, rule)


async def ask_for_two(customer_desk):
    """Let all that waits need two voices, as by a rule."""
    async with _by_operator(customer_desk.bank, UUID(customer_desk.team.customer)) as audited_action:
        changed = await audited_action.conn.fetch(
            "UPDATE transfer_request SET terms = jsonb_set(terms::jsonb, '{required}', '2')::json "
            "WHERE status = 'PENDING' RETURNING *"
        )
        record_checksums(audited_action, "transfer_request", changed)


def _by_operator(bank, customer_id):
    return record.audited(bank, customer_id, Origin.operator(), "customer.updated", resource_id=customer_id)


async def member_id_of(customer_desk):
    """Return which member of the team sits at a desk."""
    return str(
        await customer_desk.bank.pool.fetchval(
            "SELECT member_id FROM membership WHERE customer_id = $1::uuid AND user_id = $2",
            customer_desk.team.customer,
            customer_desk.team.user_id,
        )
    )


async def counterparty(world, customer, to, named=NORTHWIND):
    """Link a Pocket of a different customer as a counterparty; return its id."""
    portal = (await world.get(f"/api/v2/pockets/{to.id}/portals/"))["items"][0]
    body = {"type": "on_us", "counterparty_name": named, "account_number": portal["network_address"]}
    return (await world.post(f"/api/v2/customers/{customer}/counterparties/", body))["id"]


def wire(origin, cents, to, **fields):
    """Return the body that asks for a wire to a counterparty."""
    return {
        "transfer": {
            "id": str(ids.new()),
            "type": "WIRE",
            "origin_pocket_id": origin.id,
            "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": cents},
            "counterparty_id": to,
            **fields,
        },
        "reviewers": [],
    }


async def wire_counterparty(customer_desk, *, kind="wire", verification="pre_verified"):
    """Link an account of another bank, or a wallet; return its id."""
    customer, details = UUID(customer_desk.team.customer), DETAILS["wire"]
    added = await EngineCommands(customer_desk.bank).add_counterparty(
        customer, kind, details=details, verification=verification, name=CONTOSO
    )
    return added["counterparty_id"]


def proposed(answer):
    """Return the id of a command's proposal, from its status and output."""
    status, said = answer
    assert (status, "Another operator confirms it" in said) == (0, True), said
    return re.findall(r"proposals confirm ([0-9a-f-]{36})", said)[0]


def confirmed(billfold, answer):
    """Confirm a command's proposal as a second operator; return the output."""
    status, said = billfold("proposals", "confirm", proposed(answer), BILLFOLD_OPERATOR="otto")
    assert (status, "APPLIED" in said) == (0, True), said
    return said


async def confirm_as_otto(bank, said):
    """Confirm the proposal of a command of the tests, as a second operator."""
    await confirm(bank, proposed((0, said)), by=Operator.of_command_line("otto"))
