"""One request per operation of the Customer API."""

from uuid import UUID

from tests.reference.recorder import number
from tests.reference.return_calls import play_disputes, play_requests_of_both
from tests.reference.shared_calls import (
    ACCOUNT,
    DEPOSITS,
    make_june,
    play_applications,
    play_batch,
    play_debit,
    play_documents,
    play_events,
    play_explanations,
    play_hold,
    play_note,
    play_plans,
    play_reports,
    play_request_log,
    send_deposits,
)
from tests.support.whole_bank import ADDRESS

from billfold.reports.proofs.roots.worker import publish_root

BOX, V1, V2 = "/api/v1/sandbox", "/api/v1", "/api/v2"
USER, MEMBER, OTHER_USER, OTHER_MEMBER = (number(2000 + n) for n in range(4))
COLLEAGUE = {"first_name": "Dee", "last_name": "Fox", "email": "dee@northwind.example", "role": "VIEWER"}
PROOF = "WIRE_COUNTERPARTY_VERIFICATION"
KEYS = [
    f"-----BEGIN PUBLIC KEY-----\n{each}\n-----END PUBLIC KEY-----"
    for each in (
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
        "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=",
    )
]
"""Public keys as PEM (Ed25519) that no test signs with."""


async def play_customer_api(r, world, other):
    """Play everything a member can ask for; `other` is the desk of another, `world` plays for the partner."""
    pocket = await _play_pockets(r, world)
    await _play_counterparties(r)
    await play_hold(r, pocket)
    await _play_undoing(r, world, pocket)
    await _play_reads(r, pocket)
    positions = {"type": "POSITION_SUMMARY_REPORT", "parameters": {"date": "2025-06-02"}, "output_formats": ["CSV"]}
    await play_reports(r, f"{V1}/report/", positions)
    await play_events(r)
    await _play_notifications(r)
    await _play_team(r)
    await _play_programs(r)
    await _play_approvals(r, other, pocket)
    one = (await r.get("-", f"{V1}/transfers/on-us/"))["items"][0]["id"]
    await play_plans(r, f"{V1}/limits/", one)
    await play_disputes(r, world, pocket)
    await play_requests_of_both(r, pocket)
    base = f"{V2}/business-applications/"
    await _play_invites(r, base)
    approved, _ = await play_applications(r, base)
    await play_note(r, f"{base}{approved['id']}/")
    team = await r.post("create_application_team", f"{base}{approved['id']}/team/", [COLLEAGUE])
    r.name(*(each["member_id"] for group in team["groups"] for each in group["members"]))
    await _play_statements(r, pocket)
    await play_explanations(r, pocket, V2)
    await publish_root(r.desk.bank)
    await r.get("get_daily_proof", f"{V1}/proofs/latest/")
    await play_request_log(r)


async def _play_invites(r, base):
    """Invite three to an application, and withdraw one."""
    one = f"{base}{(await r.post('-', base, {'name': 'Fabrikam Ltd'}))['id']}/"
    person = {"email": "dan@fabrikam.example", "first_name": "Dan", "last_name": "Poe"}
    await r.post("-", f"{one}invite/", {"invitation_type": "AUTHORIZED_PERSON", **person})
    await r.post("-", f"{one}invite/", {"invitation_type": "RELATED_PARTY", **person})
    helpers = {"invitation_type": "COLLABORATOR", "collaborators": [{"email": "carol@helpers.example"}]}
    made = (await r.post("invite_to_application", f"{one}invite/", helpers))["invites"]
    await r.get("list_application_invites", f"{one}invites/")
    await r.delete("withdraw_application_invite", f"{one}invites/{made[0]['id']}/")


async def _play_statements(r, pocket):
    bought = (await r.get("-", f"{V2}/trades/"))["items"][-1]["id"]
    await r.get("get_trade", f"{V2}/pockets/{pocket}/trades/{bought}/")
    await r.get("explain_trade", f"{V2}/pockets/{pocket}/trades/{bought}/explain/")
    await r.get("redirect_to_confirmation", f"{V1}/accounts/{pocket}/trades/{bought}/confirmation/")
    await make_june(r.desk, r.desk.team.customer)
    await r.get("list_pocket_values", f"{V2}/pockets/{pocket}/values/", date_from="2025-06-26", date_to="2025-06-30")
    await r.get("list_statements", f"{V1}/statements/")


async def _play_pockets(r, world):
    """Open, change and fund a Pocket; return its id."""
    pockets = f"{V2}/pockets/"
    new = {"pocket_name": "Reserve", "deposit_strategy_id": "UST-4W", "metadata": {"team": "ops"}}
    pocket = (await r.post("create_pocket", pockets, new))["id"]
    await world.post("-", f"{BOX}/pockets/{pocket}/", {"real_time_yield": True})
    await r.patch("update_pocket", f"{pockets}{pocket}/", {"pocket_name": "Payroll reserve"})
    portals = f"{pockets}{pocket}/portals/"
    portal = (await r.post("create_portal", portals, {"name": "Payroll"}))["id"]
    await r.patch("update_portal", f"{portals}{portal}/", {"name": "Wages"})
    wire = {"portal_id": portal, "amount_usdc": 25_000_000, "sender_name": "Contoso"}
    await world.post("-", f"{BOX}/wire/", wire)
    await r.get("get_funding_instructions", f"{portals}{portal}/funding-instructions/")
    return pocket


async def _play_counterparties(r):
    path = f"{V2}/counterparties/"
    one = f"{path}{(await r.post('create_counterparty', path, ACCOUNT))['id']}/"
    await send_deposits(r.desk.bank)
    await r.post("verify_micro_deposits", f"{one}verify-micro-deposits/", DEPOSITS)
    await r.patch("update_counterparty", one, {"display_name": "Supplier"})
    await r.get("get_counterparty", one)
    await r.get("explain_counterparty", f"{one}explain/")
    await r.get("list_counterparties", path)
    await play_documents(r, f"{V1}/documents/{PROOF}/", f"{V2}/documents/", read=f"{V2}/documents/")


async def _play_undoing(r, world, pocket):
    """Cancel a wire that the partner has sent, and return a debit."""
    payee = {name: value for name, value in ACCOUNT.items() if name not in {"account_type", "account_number"}}
    payee |= {"type": "wire", "identifier": "5647772655", "address": ADDRESS, "verification": {"type": "incoming_wire"}}
    linked = (await r.post("-", f"{V2}/counterparties/", payee))["id"]
    approved = {"counterparty_id": linked, "status": "APPROVED"}
    await world.post("-", f"{BOX}/counterparty-verification/", approved)
    wire = {"counterparty_id": linked, "amount_usdc": 25_000}
    sent = (await world.post("-", f"{V1}/service-accounts/{pocket}/wires/", wire))["id"]
    await r.post("cancel_wire", f"{V1}/wires/{sent}/cancel/", {})
    portal = (await r.get("-", f"{V2}/portals/"))["items"][0]["id"]
    debit = {"portal_id": portal, "direction": "DEBIT", "amount_usdc": 2_500}
    await world.post("-", f"{BOX}/ach/entries/", debit)
    await play_debit(r, f"{V2}/transactions/")
    booked = (await r.get("-", f"{V2}/transactions/", type="ACH"))["items"]
    collected = next(each for each in booked if each["title"] == "ACH debit")
    sold = (await r.get("-", f"{V2}/trades/"))["items"][1]["id"]
    told = (await r.get("-", f"{V1}/notifications/"))["items"][0]["notification_metadata"]["event_id"]
    # What the debit moved has ids from its file, which chance names.
    r.name(collected["id"], collected["transaction_id"], sold, told, since=4000)


async def _play_reads(r, pocket):
    for name, path in (
        ("get_agreements", f"{V1}/agreements/"),
        ("get_customer", f"{V1}/customer/"),
        ("get_user", f"{V1}/user/"),
        ("list_memberships", f"{V1}/user/memberships/"),
        ("list_v1_trades", f"{V1}/trades/"),
        ("list_trades", f"{V2}/trades/"),
        ("list_pockets", f"{V2}/pockets/"),
        ("get_pocket", f"{V2}/pockets/{pocket}/"),
        ("get_pocket_earnings", f"{V2}/pockets/{pocket}/earnings/"),
        ("list_earnings", f"{V2}/earnings/"),
        ("list_portals", f"{V2}/pockets/{pocket}/portals/"),
        ("list_customer_portals", f"{V2}/portals/"),
        ("list_trading_strategies", f"{V2}/trading-strategies/"),
        ("get_transactions_csv", f"{V2}/transactions.csv"),
        ("get_trades_csv", f"{V1}/trades.csv"),
    ):
        await r.get(name, path)
    one = (await r.get("list_wires", f"{V1}/wires/"))["items"][0]["id"]
    await r.get("get_wire", f"{V1}/wires/{one}/")
    await r.get("explain_wire", f"{V1}/wires/{one}/explain/")
    await r.patch("annotate_wire", f"{V1}/wires/{one}/", {"metadata": {"invoice": "INV-2041"}})
    one = (await r.get("list_transactions", f"{V2}/transactions/"))["items"][0]["id"]
    await r.get("get_transaction", f"{V2}/transactions/{one}/")
    await r.get("explain_transaction", f"{V2}/transactions/{one}/explain/")


async def _play_notifications(r):
    """Read the team's notifications and audit log."""
    told, audience = f"{V1}/notifications/", f"{V1}/notification-audiences/"
    one = (await r.get("list_notifications", told))["items"][0]["id"]
    await r.get("get_notification", f"{told}{one}/")
    await r.patch("update_notification", f"{told}{one}/", {"status": "READ"})
    await r.get("count_unread_notifications", f"{told}unread/")
    await r.post("mark_all_notifications_read", f"{told}mark-all-read/")
    await r.get("list_notification_audiences", audience)
    chosen = f"{audience}FUNDS_RECEIVED/"
    await r.get("get_notification_audience", chosen)
    await r.play("set_notification_audience", "PUT", chosen, {"roles": ["ADMIN"], "user_ids": [str(USER)]})
    await r.delete("clear_notification_audience", chosen)
    await r.get("list_audit_logs", f"{V1}/team/audit-logs/")
    await r.get("list_member_audit_logs", f"{V1}/team/members/{MEMBER}/audit-logs/")
    await r.get("get_audit_logs_csv", f"{V1}/team/audit-logs.csv")


async def _play_team(r):
    """Invite two users, let one invitation expire, and list the team."""
    path = f"{V1}/team/"
    person = {
        "first_name": "Ben",
        "last_name": "Ode",
        "email": "ben@northwind.example",
        "phone_number": "+12025550144",
        "role": "MANAGER",
    }
    ben = (await r.post("invite_team_member", f"{path}invite/", person))["member_id"]
    r.name(ben)
    await r.post("resend_invite", f"{path}{ben}/invite/")
    await r.play("update_team_member", "PUT", f"{path}{ben}/", {"role": "APPROVER"})
    await r.get("get_team_member", f"{path}{MEMBER}/")
    await r.get("get_team", path)
    await r.delete("cancel_invite", f"{path}{ben}/invite/")


async def _play_programs(r):
    """Make a program, give it other keys, and deactivate it."""
    path = f"{V1}/team/service-users/"
    new = {
        "name": "Ledger",
        "description": "Books what was paid.",
        "scopes": ["pockets.read", "customer.read"],
        "public_key": KEYS[0],
    }
    made = await r.post("create_service_user", path, new)
    r.name(made["member_id"], str(UUID(made["client_id"])))
    path = f"{path}{made['member_id']}/"
    await r.get("get_service_user", path)
    await r.post("add_service_user_key", f"{path}keys/", {"public_key": KEYS[1]})
    await r.post("rotate_service_user_keys", f"{path}keys/rotate/", {"public_key": KEYS[2]})
    await r.get("list_service_user_keys", f"{path}keys/")
    await r.delete("revoke_service_user_key", f"{path}keys/{made['key_id']}/")
    await r.delete("deactivate_team_member", f"{V1}/team/{made['member_id']}/")


async def _play_approvals(r, other, pocket):
    """Ask for a transfer, change it, have `other` approve it, and take another one back."""
    path = f"{V1}/transfer-requests/"
    to = (await r.post("-", f"{V2}/pockets/", {"pocket_name": "Payroll", "deposit_strategy_id": "UST-4W"}))["id"]
    order = {
        "id": str(number(2201)),
        "type": "ON_US",
        "origin_pocket_id": pocket,
        "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_000_00},
        "details": {"type": "INTERNAL_REALLOCATION", "destination_pocket_id": to},
        "description": "Wages of June",
    }
    await r.get("list_transfer_reviewers", f"{path}reviewers/")
    await r.post("preview_transfer", f"{path}preview/", {"transfer": order, "reviewers": []})
    one = f"{path}{(await r.post('create_transfer_request', path, {'transfer': order, 'reviewers': []}))['id']}/"
    dearer = order | {"amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": 1_200_00}}
    await r.patch("update_transfer_request", one, {"transfer": dearer})
    with r.at(other):
        said = {"status": "APPROVED", "comment": "As planned", "version": 2}
        await r.patch("decide_transfer_request", f"{one}status/", said)
        second = order | {"id": str(number(2202))}
        two = (await r.post("-", path, {"transfer": second, "reviewers": []}))["id"]
    await _play_rules(r, other)
    await _play_policy(r, other)
    await r.get("get_transfer_request", one)
    await r.get("explain_transfer_request", f"{one}explain/")
    await r.delete("cancel_transfer_request", f"{path}{two}/")
    await r.get("list_transfer_requests", path)
    await _play_series(r, other, order)
    await _play_batches(r, other, pocket, to)


async def _play_batches(r, other, pocket, to):
    """Ask for a list of transfers, have `other` approve it, and take another one back."""
    path = f"{V1}/batches/"
    row = {"type": "INTERNAL_REALLOCATION", "from_pocket_id": pocket, "to_pocket_id": to}
    body = {"kind": "TRANSFERS", "mode": "INDEPENDENT", "rows": [row | {"amount_usdc": 12_500}]}
    await r.post("preview_batch", f"{path}preview/", body)
    one = await play_batch(r, row)
    with r.at(other):
        await r.patch("decide_batch", f"{one}status/", {"status": "APPROVED", "comment": "As planned"})
    await r.desk.bank.pool.execute("DELETE FROM rate_limit_window")
    await r.delete("cancel_batch", f"{path}{(await r.post('-', path, body))['id']}/")


async def _play_series(r, other, order):
    """Ask for a transfer on the last day of every month, have `other` approve it, look ahead and pause it."""
    schedule = {"start_on": "2025-06-30", "rule": "FREQ=MONTHLY;BYMONTHDAY=-1", "on_closed_day": "BEFORE"}
    body = {"transfer": order | {"id": str(number(2203))}, "reviewers": [], "schedule": schedule}
    await r.desk.bank.pool.execute("DELETE FROM rate_limit_window")
    path = f"{V1}/transfer-requests/{(await r.post('-', f'{V1}/transfer-requests/', body))['id']}/"
    with r.at(other):
        await r.patch("-", f"{path}status/", {"status": "APPROVED"})
    await r.get("list_upcoming_runs", f"{path}upcoming-runs/")
    await r.patch("update_schedule_state", f"{path}schedule/", {"state": "PAUSED"})


async def _play_rules(r, other):
    """Ask for a rule, have `other` confirm it, change it and ask for its end."""
    rules, changes = f"{V1}/approval-rules/", f"{V1}/authorization-requests/"
    new = {
        "name": "Large wires",
        "transfer_types": ["WIRE"],
        "min_amount_usdc": 100_000_00,
        "required_approvals": 2,
        "approver_roles": ["MANAGER", "ADMIN"],
        "ordered": True,
    }
    asked = await r.post("create_approval_rule", rules, new)
    r.name(asked["id"], asked["resource_id"])
    change, rule = f"{changes}{asked['id']}/", f"{rules}{asked['resource_id']}/"
    with r.at(other):
        said = {"status": "APPROVED", "comment": "As agreed with the board"}
        await r.patch("decide_authorization_request", f"{change}status/", said)
    await r.get("get_authorization_request", change)
    await r.get("list_authorization_requests", changes)
    await r.get("get_approval_rule", rule)
    await r.get("list_approval_rules", rules)
    r.name((await r.patch("update_approval_rule", rule, {"required_approvals": 2, "enabled": False}))["id"])
    r.name((await r.delete("delete_approval_rule", rule))["id"])


async def _play_policy(r, other):
    """Check a policy, try it on the payments of the month, propose it, and have `other` approve it."""
    policy = f"{V1}/policy/"
    weekend = {
        "name": "no wires at weekends",
        "when": "payment.rail == 'WIRE' && payment.at.weekday in ['SAT', 'SUN']",
        "then": {"decision": "REFUSE", "reason": "Wires are sent on weekdays."},
    }
    saturday = {
        "name": "a wire on Saturday",
        "payment": {"rail": "WIRE", "at": {"weekday": "SAT"}},
        "expect": {"decision": "REFUSE"},
    }
    body = {"document": {"rules": [weekend], "tests": [saturday]}}
    await r.post("check_policy", f"{policy}checks/", body)
    everything = weekend | {"name": "ask twice", "when": "true", "then": {"decision": "REQUIRE", "approvals": 2}}
    await r.post("backtest_policy", f"{policy}backtests/", {"document": {"rules": [everything]}})
    asked = await r.play("propose_policy", "PUT", policy, body)
    r.name(asked["id"])
    with r.at(other):
        await r.patch("-", f"{V1}/authorization-requests/{asked['id']}/status/", {"status": "APPROVED"})
    await r.get("get_policy", policy)
    await r.get("list_policy_versions", f"{policy}versions/")
    await r.get("get_policy_version", f"{policy}versions/1/")
