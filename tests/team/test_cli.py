"""`billfold users`: a member gets a link, never a password; a deactivated user is signed out."""

import re

from tests.support.oauth import new_key
from tests.wiring.cli.test_commands import _fetch

from billfold.accounts.customers.partner_customers import partner_ids

SEED = b"a seed of the command line"
ANNA = ("anna@acme.example", "--first-name", "Anna", "--last-name", "Lind")


def customer(founded):
    founded("partner", "create", "acme")
    return str(partner_ids(SEED, "acme").sandbox_customer_id)


def test_a_new_user_is_a_member_and_gets_a_password_link(founded, database_dsn):
    status, said = founded("users", "add", *ANNA, "--customer", customer(founded), "--role", "admin", "--show-link")
    assert status == 0, said
    assert "as ADMIN" in said
    assert re.search(r"https://auth\.localhost:8443/password\?link=[\w-]{43}", said)
    assert _fetch(database_dsn, "SELECT recipient FROM outbound_email WHERE sealed IS NOT NULL")
    assert "anna@acme.example" in founded("users", "list")[1]


def test_users_add_prints_the_password_link_only_with_show_link(founded):
    said = founded("users", "add", *ANNA, "--customer", customer(founded))[1]
    assert "link=" not in said
    assert "on its way" in said


def test_a_deactivated_user_is_signed_out_and_not_listed(founded, database_dsn):
    founded("users", "add", *ANNA, "--customer", customer(founded))
    assert founded("users", "reset-mfa", "anna@acme.example")[0] == 0
    assert founded("users", "send-password-link", "anna@acme.example")[0] == 0
    assert founded("users", "deactivate", "anna@acme.example")[0] == 0
    assert "anna@acme.example" not in founded("users", "list")[1]
    assert _fetch(database_dsn, "SELECT 1 FROM email_link") == []
    log = _fetch(
        database_dsn, "SELECT action, actor_name FROM audit_entry WHERE resource_type = 'member' ORDER BY entry_no"
    )
    assert [tuple(row) for row in log] == [
        ("member.added", "operator"),
        ("user.factor_changed", "operator"),
        ("member.deactivated", "operator"),
    ]


def test_an_unknown_user_or_role_is_rejected_with_a_next_step(founded):
    status, said = founded("users", "send-password-link", "nobody@acme.example")
    assert (status, "billfold users list" in said) == (1, True)
    own = customer(founded)
    assert "is not one of" in founded("users", "add", *ANNA, "--customer", own, "--role", "KING")[1]
    nobody = "8f3b6f60-0000-4000-8000-00000000aaaa"
    assert "no such customer" in founded("users", "add", *ANNA, "--customer", nobody)[1]
    assert "email" in founded("users", "add", "anna", "--customer", own)[1]


def test_operator_changes_to_a_team_are_in_its_audit_log(founded, database_dsn, tmp_path):
    own = customer(founded)
    founded("users", "add", *ANNA, "--customer", own, "--role", "ADMIN")
    key = tmp_path / "key.pem"
    key.write_text(new_key().pem)
    founded(
        "oauth-client",
        "create",
        "Ledger",
        "--client-id",
        "ledger",
        "--scope",
        "pockets.read",
        "--customer",
        own,
        "--key",
        str(key),
    )
    founded("oauth-client", "revoke", "ledger")
    founded("users", "deactivate", "anna@acme.example")
    rows = _fetch(
        database_dsn,
        "SELECT action FROM audit_entry WHERE actor = 'OPERATOR' AND resource_type = 'member' ORDER BY entry_no",
    )
    assert [row["action"] for row in rows] == [
        "member.added",
        "service_user.created",
        "member.deactivated",
        "member.deactivated",
    ]


def test_bank_operators_and_partner_members_are_added_by_organization(founded, database_dsn):
    customer(founded)
    assert "of the bank as MANAGER" in founded("users", "add", *ANNA, "--bank", "--role", "MANAGER")[1]
    assert "of acme as VIEWER" in founded("users", "add", *ANNA, "--partner", "acme")[1]
    teams = _fetch(
        database_dsn, "SELECT c.role, m.role FROM membership m JOIN customer c USING (customer_id) ORDER BY 1"
    )
    assert [tuple(each) for each in teams] == [("house", "MANAGER"), ("partner", "VIEWER")]
    assert "no partner" in founded("users", "add", *ANNA, "--partner", "nobody")[1]
    assert "Name one team" in founded("users", "add", *ANNA, "--partner", "acme", "--bank")[1]
