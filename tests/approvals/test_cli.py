"""`billfold approvals`: the operator lists pending requests and decides as the second person."""

import asyncio
import re
from uuid import UUID

import asyncpg
from tests.wiring.cli.test_commands import _fetch

from billfold.accounts.customers.partner_customers import partner_ids

SEED = b"a seed of the command line"
ANNA = ("anna@acme.example", "--first-name", "Anna", "--last-name", "Lind")
REQUEST = "6c1a7a52-3f0e-4f0b-9a57-1d0c8b7e4a10"
RULE = "6c1a7a52-3f0e-4f0b-9a57-1d0c8b7e4a11"
CONTENT = (
    '{"action":"approval_rule.create","change":{"rule":{"rule_id":"' + RULE + '","name":"All",'
    '"required_approvals":0,"created_at":"2025-06-02T13:00:00Z",'
    '"updated_at":"2025-06-02T13:00:00Z"},"version":null}}'
)


def request_rule(dsn, customer):
    """Add a pending request for an approval rule by Anna, the only member."""

    async def write():
        conn = await asyncpg.connect(dsn)
        await conn.execute(
            "INSERT INTO authorization_request (customer_id, request_id, action, resource_type, "
            "resource_id, content, content_hash, member_id, user_id, client_id, terms, status, "
            "created_at, updated_at, expires_at) SELECT $1, $2, 'approval_rule.create', "
            "'approval_rule', $3, $4::text::json, sha256(convert_to($4::text, 'UTF8')), "
            "m.member_id, m.user_id, 'books', '{}', 'PENDING', now(), now(), "
            "'2099-01-01T00:00:00Z' FROM membership m WHERE m.customer_id = $1",
            UUID(customer),
            UUID(REQUEST),
            UUID(RULE),
            CONTENT,
        )
        await conn.close()

    asyncio.run(write())


def test_the_operator_confirms_a_request_of_a_single_member_team(founded, database_dsn):
    founded("partner", "create", "acme")
    own = str(partner_ids(SEED, "acme").sandbox_customer_id)
    founded("users", "add", *ANNA, "--customer", own, "--role", "admin")
    request_rule(database_dsn, own)
    status, said = founded("approvals", "list", own)
    assert status == 0, said
    assert "approval_rule.create" in re.sub(r"\s+", " ", said)
    status, said = founded("approvals", "show", own, REQUEST)
    assert (status, '"required_approvals": 0' in said, "PENDING, SHA-256" in said) == (0, True, True), said
    assert "The default rule requires more approvals" in re.sub(r"\s+", " ", said)
    status, said = founded("approvals", "confirm", own, REQUEST)
    assert (status, "approval_rule.create" in said) == (0, True), said
    [rule] = _fetch(database_dsn, "SELECT name, required_approvals FROM approval_rule")
    assert tuple(rule) == ("All", 0)
    status, said = founded("approvals", "confirm", own, REQUEST)
    assert (status, "APPROVED" in said) == (1, True), said
    assert founded("approvals", "require-mfa", own)[0] == 0
    assert [row["step_up"] for row in _fetch(database_dsn, "SELECT step_up FROM dual_control")] == [True]
    log = _fetch(
        database_dsn, f"SELECT action, actor, outcome FROM audit_entry WHERE customer_id = '{own}' ORDER BY entry_no"
    )
    assert [tuple(row) for row in log][-3:] == [
        ("authorization_request.approved", "OPERATOR", "SUCCESS"),
        ("authorization_request.approved", "OPERATOR", "FAILURE"),
        ("customer.updated", "OPERATOR", "SUCCESS"),
    ]
