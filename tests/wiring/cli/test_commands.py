"""The commands on a real database: each has its documented effect and names the next step."""

import asyncio
import json
import os
import re
import signal
import threading
from datetime import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.fixtures.cli import SEED, fetch

from billfold.accounts.customers import routes as customer_routes
from billfold.accounts.customers.partner_customers import partner_ids
from billfold.identity.partners.rules import FEATURES
from billfold.payments.ach import routes as ach_routes
from billfold.payments.wires import routes as wire_routes
from billfold.treasury.market_log import MARKET_LOG
from billfold.wiring.cli.app import run
from billfold.wiring.cli_context import Wiring


def _fetch(dsn, query):
    return asyncio.run(fetch(dsn, query))


def test_migrating_the_database_initializes_the_bank_once(billfold):
    assert billfold("migrate", "up") == (0, "✓ Nothing was pending.")  # the fixture had migrated
    assert billfold("migrate", "status")[0] == 0
    status, said = billfold("migrate", "up", BILLFOLD_SEED="another")
    assert status == 1
    assert "another seed" in said


@pytest.mark.one_server
def test_migrations_are_reverted_and_applied_again(billfold):
    assert billfold("migrate", "down", "--yes")[0] == 0
    status, said = billfold("migrate", "status")
    assert status == 1
    assert "billfold migrate up" in said
    assert billfold("clock", "show")[0] == 1
    assert billfold("migrate", "up")[0] == 0


@pytest.mark.parametrize("words", [("migrate", "up"), ("migrate", "status"), ("clock", "show"), ("doctor",)])
def test_a_command_on_an_unreleased_schema_is_refused_with_a_next_step(billfold, database_dsn, words):
    _fetch(database_dsn, "UPDATE schema_migration SET name = '0001_house' WHERE version = 1")
    status, said = billfold(*words)
    assert (status, "before release 0.1.0" in said, "billfold sandbox --fresh" in said) == (1, True, True), said


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("set", "2026-03-08T02:30"), "not one instant in New York"),
        (("set", "2026-11-01T01:30"), "not one instant in New York"),
        (("set", "9999-12-31T23:00"), "not a timestamp"),
        (("set", "2025-06-03T09:00 Mars/Olympus"), "not a timestamp"),
        (("set", "2098-01-01T00:00Z"), "clock-too-far"),
        (("advance", "--days", "99999999999"), "should be less than"),
        (("advance", "--business-days", "36600"), "clock-too-far"),
        (("next", "maturity"), "nothing-ahead"),
    ],
)
def test_clock_commands_refuse_an_unsupported_instant(founded, words, wrong):
    status, said = founded("clock", *words)
    assert status
    assert wrong in said
    assert "Mon 2025-06-02 09:00:00" in founded("clock", "show")[1]


def test_a_clock_advance_ends_on_ctrl_c(founded, database_dsn):
    async def interrupt():
        while (await fetch(database_dsn, "SELECT max(business_anchor) AS at FROM clock"))[0]["at"].month < 7:
            await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    founded("clock", "show")
    watcher = threading.Thread(target=asyncio.run, args=(interrupt(),))
    watcher.start()
    status, said = founded("clock", "set", "2097-12-01T09:00")
    watcher.join()
    assert (status, "clock-stopped" in said) == (1, True)
    assert "2025" in founded("clock", "show")[1]


def test_clock_commands_show_and_advance_the_clock_but_refuse_to_set_it_back(founded):
    status, said = founded("clock", "show")
    assert status == 0
    assert "Mon 2025-06-02 09:00:00 EDT (frozen)" in said
    assert "2025-06-03" in founded("clock", "advance", "--business-days", "1")[1]
    assert "Wed 2025-06-04 10:00:00" in founded("clock", "set", "2025-06-04T10:00")[1]
    assert "Wed 2025-06-04 17:00:00" in founded("clock", "next")[1]
    assert "running" in founded("clock", "resume")[1]
    assert "frozen" in founded("clock", "freeze")[1]
    status, said = founded("clock", "set", "2025-06-01T00:00")
    assert status == 1
    assert "clock-would-go-back" in said


@pytest.mark.parametrize(
    "words", [("advance",), ("advance", "--business-days", "1", "--hours", "1"), ("set", "tomorrow")]
)
def test_an_ambiguous_clock_command_is_refused_with_a_next_step(founded, words):
    status, said = founded("clock", *words)
    assert status == 1
    assert "Next:" in said


def test_partner_create_makes_a_partner_with_pockets_and_credentials(founded):
    status, said = founded("partner", "create", "acme", "--name", "Acme Inc.")
    assert status == 0
    places = partner_ids(SEED.encode(), "acme")
    assert str(places.facilitation_pocket_id) in said
    assert "password" in said
    assert "not shown again" in said
    status, said = founded("partner", "create", "acme")
    assert status == 1
    assert "duplicate-id" in said
    assert "Acme Inc." in founded("partner", "list")[1]


def test_partner_create_with_an_invalid_slug_creates_nothing(founded):
    status, said = founded("partner", "create", "Not A Host")
    assert status == 1
    assert "slug" in said
    assert "Not A Host" not in founded("partner", "list")[1]


def test_partner_credentials_are_added_and_changed(founded, tmp_path):
    founded("partner", "create", "acme")
    assert "anna may log in" in founded("partner", "add-user", "acme", "anna")[1]
    pem = tmp_path / "key.pem"
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    pem.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    status, said = founded("partner", "add-key", "anna", str(pem))
    assert status == 0
    assert "kid = " in said
    assert founded("partner", "add-key", "nobody", str(pem))[0] == 1
    pem.write_bytes(b"\xff\xfe")
    assert "is not a text" in founded("partner", "add-key", "anna", str(pem))[1]
    assert "new signing secret" in founded("partner", "rotate-secret", "acme")[1]
    assert founded("partner", "enable", "acme", "customer_closure")[0] == 0
    assert "customer_closure" in founded("partner", "list")[1]
    assert founded("partner", "disable", "acme", "customer_closure")[0] == 0
    assert "customer_closure" not in founded("partner", "list")[1]
    assert "ccd is on" in founded("partner", "enable", "acme", "ccd")[1]
    assert "unverified_wires is on" in founded("partner", "enable", "acme", "unverified-wires")[1]
    status, said = founded("partner", "enable", "acme", "customer-close")
    assert status == 1
    assert "customer_closure" in said
    status, said = founded("partner", "enable", "nobody", "customer_closure")
    assert status == 1
    assert "billfold partner list" in said
    assert "calls from 2001:db8::/32" in founded("partner", "allow-ip", "acme", "2001:db8::/32")[1]
    assert "2001:db8::/32, 203.0.113.7/32" in founded("partner", "allow-ip", "acme", "203.0.113.7")[1]
    for wrong in ("203.0.113.7/24", "anywhere", "::ffff:10.0.0.0/104"):
        assert founded("partner", "allow-ip", "acme", wrong)[0] == 1
    assert founded("partner", "disallow-ip", "acme", "2001:db8::/32")[0] == 0
    assert founded("partner", "disallow-ip", "acme", "2001:db8::/32")[0] == 1
    assert "203.0.113.7/32" in founded("partner", "list")[1]


def test_customers_show_reports_the_obstacles_to_closing(founded):
    founded("partner", "create", "acme")
    places = partner_ids(SEED.encode(), "acme")
    customer = str(places.sandbox_customer_id)
    assert customer in founded("customers", "list", "--partner", "acme", "--status", "PENDING")[1]
    assert "None." in founded("customers", "list", "--status", "FROZEN")[1]
    assert "wires is on" in founded("customers", "enable", customer, "wires")[1]
    assert founded("customers", "disable", customer, "cards")[0] == 1
    said = founded("customers", "show", customer)[1]
    for part in ("(BUSINESS) is PENDING", "feature wires on, for this customer only", "can be closed"):
        assert part in said
    assert "is FROZEN" in founded("customers", "freeze", customer, "--reason", "Court order 7/25", "--alone")[1]
    said = founded("customers", "show", customer)[1]
    assert "cannot be closed: The customer is FROZEN" in said
    assert founded("customers", "show", str(places.partner_id))[0] == 1
    said = founded("customers", "show", str(places.own_customer_id))[1]
    assert "cannot be closed: A partner's own account" in said
    assert founded("verify")[0] == 0


def test_every_feature_that_a_route_requires_can_be_enabled():
    asked = {
        ach_routes.CCD_FEATURE,
        customer_routes.CLOSURE_FEATURE,
        wire_routes.WIRES_FEATURE,
        wire_routes.UNVERIFIED_WIRES_FEATURE,
    }
    assert asked == set(FEATURES)


def test_partner_rate_limits_are_changed_individually(founded):
    founded("partner", "create", "acme")
    said = founded("partner", "set-rate-limit", "acme", "--requests", "1200")[1]
    assert "1200 requests a minute, of which 60" in said
    said = founded("partner", "set-rate-limit", "acme", "--of-which-money", "7")[1]
    assert "1200 requests a minute, of which 7" in said
    assert "1200 │ 7" in founded("partner", "list")[1]
    assert founded("partner", "set-rate-limit", "acme")[0] == 1
    assert founded("partner", "set-rate-limit", "nobody", "--requests", "5")[0] == 1


def test_a_pocket_is_frozen_and_unfrozen_by_the_operator(founded, database_dsn):
    founded("partner", "create", "acme")
    pocket = str(partner_ids(SEED.encode(), "acme").facilitation_pocket_id)
    for words, column, expected in (
        (("freeze", pocket, "--alone"), "status", "FROZEN"),
        (("unfreeze", pocket, "--alone"), "status", "OPEN"),
        (("real-time-yield", pocket), "real_time_yield", True),
        (("real-time-yield", pocket, "--off"), "real_time_yield", False),
    ):
        assert founded("pocket", *words)[0] == 0
        rows = _fetch(database_dsn, "SELECT status, real_time_yield FROM pocket")
        assert [row[column] for row in rows] == [expected]
    status, said = founded("pocket", "freeze", "8f72b064-f013-8fbb-add9-dd64e9528fe6", "--alone")
    assert status == 1
    assert "There is no Pocket" in said


def test_a_calendar_override_changes_only_its_fields_and_extends_an_earlier_one(founded, database_dsn):
    def overridden(*words):
        assert founded("calendar", "override", "2025-11-11", *words, "--reason", "Told by the Reserve")[0] == 0
        (row,) = _fetch(database_dsn, "SELECT * FROM calendar_override")
        return row["bond_market"], row["closes_at"], row["fed"]

    assert overridden("--closes", "13:00") == (None, time(13), None)
    assert overridden("--fed", "open") == (None, time(13), "open")
    assert overridden("--bond", "closed") == ("closed", None, "open")
    said = founded("calendar", "list")[1]
    assert "Told by the Reserve" in said
    assert "8 seconds later" in founded("calendar", "override", "2025-11-11", "--remove")[1]
    for words in (("--bond", "closed"), ("--reason", "Nothing named"), ("--remove",)):
        assert founded("calendar", "override", "2025-11-11", *words)[0] == 1
    overridden("--bond", "closed")
    for closes in ("13:00", "18:00"):
        status, _ = founded("calendar", "override", "2025-11-11", "--closes", closes, "--reason", "Both")
        assert status == 1


def test_an_override_of_a_past_day_is_refused(founded):
    past = founded("calendar", "override", "2025-05-30", "--bond", "closed", "--reason", "Late")
    assert (past[0], "is past" in past[1]) == (1, True)
    assert founded("calendar", "override", "2025-06-02", "--bond", "closed", "--reason", "Today")[0] == 0


def test_market_status_shows_the_age_of_market_data(founded):
    status, said = founded("market", "status")
    assert status == 0
    assert "Aug 11, 2026" in said
    assert "4-week bill" in said


def test_newer_rates_are_imported_and_contradicting_ones_refused(founded, tmp_path):
    header = "Date,4 WEEKS BANK DISCOUNT,4 WEEKS COUPON EQUIVALENT\n"
    rates = tmp_path / "rates.csv"
    rates.write_text(header + "08/12/2026,3.95,4.01\n")
    said = founded("market", "import", "--rates", str(rates))[1]
    assert "1 new, 0 known" in said
    assert "8 seconds later" in said
    said = founded("market", "import", "--rates", str(rates))[1]
    assert "0 new, 1 known" in said
    assert "later" not in said
    rates.write_text(header + "08/12/2026,3.96,4.02\n")
    status, said = founded("market", "import", "--rates", str(rates))
    assert status == 1
    assert "otherwise than what is on record" in said
    rates.write_text(header + "08/12/2026,high,4.02\n")
    assert "not a percentage" in founded("market", "import", "--rates", str(rates))[1]
    assert founded("market", "import")[0] == 1


def test_verify_reports_the_first_damaged_ledger_row(founded, database_dsn):
    founded("partner", "create", "acme")
    status, said = founded("verify")
    assert status == 0, said
    assert "every row is as it was written" in said
    _fetch(database_dsn, "UPDATE customer SET account_status = 'FROZEN' WHERE role = 'partner'")
    _fetch(database_dsn, "UPDATE ledger_head SET event_no = event_no + 1")
    status, said = founded("verify")
    assert status == 1
    assert "The first bad row is in" in said
    assert "Next:" in said


def test_doctor_reports_the_first_problem_with_a_next_step(billfold):
    status, said = billfold("doctor")
    assert status == 1
    assert "no bank in the database yet" in said
    assert "billfold migrate up" in said
    billfold("migrate", "up")
    status, said = billfold("doctor", BILLFOLD_PORT="1", BILLFOLD_HTTP_PORT="2")
    assert status == 1
    assert "test clock: Jun 2, 2025, 9:00 AM ET" in said
    assert "none yet" in said  # the certificate


def test_the_openapi_document_is_printed_without_a_database(capsysbinary):
    assert run(Wiring({}), arguments=["openapi", "partner"]) == 0
    plain = json.loads(capsysbinary.readouterr().out)
    assert run(Wiring({}), arguments=["openapi", "partner", "--all"]) == 0
    everything = json.loads(capsysbinary.readouterr().out)
    assert plain["openapi"].startswith("3.1")
    assert "/api/v1/sandbox/fund/" in plain["paths"]
    assert plain["paths"].keys() < everything["paths"].keys()
    production = {"BILLFOLD_ENVIRONMENT": "production"}
    assert run(Wiring(production), arguments=["openapi", "partner"]) == 1  # it lacks its settings


def test_callers_of_deprecated_operations_are_listed(founded, database_dsn):
    assert "Nobody" in founded("deprecations")[1]
    founded("partner", "create", "acme")
    _fetch(
        database_dsn, "INSERT INTO deprecated_call SELECT user_id, 'list_accounts', 3, now(), now() FROM partner_user"
    )
    said = founded("deprecations")[1]
    assert "list_accounts" in said
    assert "acme" in said
    assert re.search(r"E[DS]T", said)


def test_a_customers_oauth_client_is_in_its_audit_log(founded, database_dsn, tmp_path):
    founded("partner", "create", "acme")
    customer = str(partner_ids(SEED.encode(), "acme").sandbox_customer_id)
    for name in ("one", "two"):
        key = ec.generate_private_key(ec.SECP256R1()).public_key()
        pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / name).write_bytes(pem)
    words = ("--scope", "pockets.read", "--client-id", "bot", "--key", str(tmp_path / "one"))
    assert founded("oauth-client", "create", "Bot", *words, "--customer", customer)[0] == 0
    assert founded("oauth-client", "rotate-key", "bot", str(tmp_path / "two"))[0] == 0
    assert founded("oauth-client", "revoke", "bot")[0] == 0
    log = _fetch(
        database_dsn, f"SELECT action, customer_id FROM audit_entry WHERE customer_id = '{customer}' ORDER BY entry_no"
    )
    assert [(row["action"], str(row["customer_id"])) for row in log] == [
        ("service_user.created", customer),
        ("service_user.key_rotated", customer),
        ("member.deactivated", customer),
    ]


def test_audit_commands_list_export_and_seal_the_log(founded, database_dsn, tmp_path):
    assert founded("audit", "list")[0] == 0
    founded("partner", "create", "acme")
    pocket = str(partner_ids(SEED.encode(), "acme").facilitation_pocket_id)
    assert founded("pocket", "freeze", pocket, "--alone")[0] == 0
    customer = str(partner_ids(SEED.encode(), "acme").own_customer_id)
    status, said = founded("audit", "list", customer)
    assert status == 0
    assert "pocket.updated" in said
    assert "operator" in said
    status, said = founded("audit", "export", customer, "--from", "2020-01-01T00:00:00Z")
    told = json.loads(said)
    assert (told["action"], told["details"]) == ("pocket.updated", {"status": "FROZEN"})
    assert founded("audit", "export", customer, "--to", "2020-01-01T00:00:00Z") == (0, "")
    assert "not sealed, since" in founded("doctor")[1]
    assert "1 seals created; 1 are archived" in founded("audit", "seal")[1]
    assert "audit log sealed" in founded("doctor")[1]
    assert "0 seals created; 1 are archived" in founded("audit", "seal")[1]
    assert "BEGIN PUBLIC KEY" in founded("audit", "keys")[1]
    assert "offset" in founded("audit", "list", customer, "--from", "2020-01-01")[1]
    assert "There is no log of" in founded("audit", "list", "01234567-89ab-8def-8123-456789abcdef")[1]


def test_verify_reports_the_missing_tail_of_the_audit_log(founded, database_dsn, tmp_path):
    founded("partner", "create", "acme")
    founded("pocket", "freeze", str(partner_ids(SEED.encode(), "acme").facilitation_pocket_id), "--alone")
    founded("audit", "seal")
    assert founded("verify")[0] == 0
    kept_logs = f"'{MARKET_LOG}', (SELECT bank_customer_id FROM bank)"  # they prove the market and the agreements
    for statement in (
        "ALTER TABLE audit_entry DISABLE TRIGGER ALL",
        "ALTER TABLE audit_seal DISABLE TRIGGER ALL",
        f"DELETE FROM audit_entry WHERE customer_id NOT IN ({kept_logs})",
        f"DELETE FROM audit_chain_head WHERE customer_id NOT IN ({kept_logs})",
        "DELETE FROM audit_seal",
        "UPDATE audit_chain_head SET sealed_no = 0",
    ):
        _fetch(database_dsn, statement)
    kept = tmp_path / "audit-seals.txt"
    status, said = founded("verify")
    assert status == 1
    assert "audit_entry" in said
    moved = kept.rename(tmp_path / "elsewhere.txt")
    assert founded("verify")[0] == 0
    assert founded("verify", "--seals", str(moved))[0] == 1
    assert "cannot be read" in founded("verify", "--seals", str(tmp_path / "nothing.txt"))[1]
