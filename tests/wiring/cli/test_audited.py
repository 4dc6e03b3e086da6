"""Commands of operators are audited with their names, and revoked credentials no longer work."""

import asyncio
import json

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.fixtures.cli import SEED, fetch

from billfold.accounts.customers.partner_customers import partner_ids


def _fetch(dsn, query):
    return asyncio.run(fetch(dsn, query))


def new_pem(path):
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    path.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return str(path)


def test_operator_commands_are_in_the_audit_log_of_the_bank_with_the_operator(founded, tmp_path, database_dsn):
    pem = new_pem(tmp_path / "key.pem")
    places = partner_ids(SEED.encode(), "acme")
    pocket, customer = str(places.facilitation_pocket_id), str(places.sandbox_customer_id)
    for words in (
        ("partner", "create", "acme"),
        ("partner", "add-key", "acme", pem),
        ("partner", "set-rate-limit", "acme", "--requests", "5"),
        ("partner", "enable", "acme", "no-such-feature"),
        ("calendar", "override", "2026-11-27", "--closes", "13:00", "--reason", "Early close"),
        ("adjustment", "create", pocket, "2500", "--description", "Welcome"),
        ("customers", "freeze", customer, "--reason", "Court order 7/25", "--alone"),
        ("customers", "unfreeze", customer, "--reason", " ", "--alone"),
        ("partner", "list"),
    ):
        founded(*words, BILLFOLD_OPERATOR="anna")
    first, *log = [json.loads(line) for line in _lines(founded("audit", "export")[1])]
    assert (first["action"], first["actor_name"]) == ("agreements.published", "billfold")
    assert {each["actor_name"] for each in log} == {"anna"}
    assert [(each["action"], each["outcome"]) for each in log] == [
        ("partner.create", "SUCCESS"),
        ("partner.add_key", "SUCCESS"),
        ("partner.set_rate_limit", "SUCCESS"),
        ("partner.enable", "FAILURE"),
        ("calendar.override", "SUCCESS"),
        ("movement.proposed", "SUCCESS"),
        ("adjustment.create", "SUCCESS"),
        ("customers.freeze", "SUCCESS"),
        ("customers.unfreeze", "FAILURE"),
    ]
    assert log[2]["details"] == {"slug": "acme", "requests": "5"}
    assert "There is no feature" in log[3]["details"]["refused"]
    founded("partner", "rotate-secret", "acme", SUDO_USER="bo")
    assert "partner.rotate_secret │ bo" in founded("audit", "list", "--limit", "1")[1]
    assert founded("verify")[0] == 0
    _fetch(database_dsn, "ALTER TABLE audit_entry DISABLE TRIGGER ALL")
    _fetch(database_dsn, "UPDATE audit_entry SET actor_name = 'bo' WHERE action = 'partner.add_key'")
    assert founded("verify")[0] == 1


def _lines(said):
    return said.replace("} {", "}\n{").splitlines()


def test_a_partners_key_is_revoked_and_its_user_disabled(founded, tmp_path, database_dsn):
    founded("partner", "create", "acme")
    founded("partner", "add-user", "acme", "anna")
    kids = [founded("partner", "add-key", "anna", new_pem(tmp_path / "key.pem"))[1].split()[-1] for _ in range(2)]
    token = (
        "INSERT INTO partner_token SELECT 'x', partner_id, user_id, now(), now() + interval '1 hour' FROM partner_user"
    )
    tokens = "SELECT 1 FROM partner_token"
    _fetch(database_dsn, f"{token} WHERE username = 'anna'")
    assert founded("partner", "keys", "revoke", kids[0])[0] == 0
    assert _fetch(database_dsn, tokens) == []
    assert founded("partner", "keys", "revoke", kids[0])[0] == 1
    _fetch(database_dsn, f"{token} WHERE username = 'anna'")
    assert "1 keys are revoked" in founded("partner", "user", "disable", "anna")[1]
    assert _fetch(database_dsn, tokens) == []
    listed = founded("partner", "keys", "list", "acme")[1]
    assert all(kid in listed for kid in kids)
    assert listed.count("EST") == 4  # registered and revoked
    for words in (("add-key", "anna", str(tmp_path / "key.pem")), ("user", "disable", "anna")):
        status, said = founded("partner", *words)
        assert (status, "who may log in" in said) == (1, True)
    assert founded("verify")[0] == 0
