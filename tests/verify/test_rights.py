"""A role, scope, key or subscription URL that was changed outside the bank is named by `verify`."""

from tests.events.webhooks.test_routes import NEW, PATH
from tests.support.approvals import member_id_of
from tests.support.oauth import new_key
from tests.support.whole_bank import expect_clean
from tests.team.test_cli import ANNA, customer
from tests.wiring.cli.test_commands import _fetch

from billfold.verify.runner import verify_bank

CHANGED = "it differs from its last audit entry"
OF_CLIENT = "WHERE client_id IN (SELECT client_id FROM oauth_client WHERE member_id IS NOT NULL)"
DAMAGES = {
    "UPDATE subscription SET url = 'https://attacker.example/'": ("subscription", CHANGED),
    f"UPDATE oauth_client SET scopes = scopes || '{{transfers.write}}' {OF_CLIENT}": ("oauth_client", CHANGED),
    f"UPDATE client_key SET public_pem = 'another' {OF_CLIENT}": ("oauth_client", CHANGED),
    f"UPDATE client_key SET client_id = 'books' {OF_CLIENT}": ("oauth_client", CHANGED),
    "UPDATE membership SET role = 'ADMIN' WHERE role = 'VIEWER'": ("membership", CHANGED),
    "UPDATE membership SET status = 'DEACTIVATED' WHERE role = 'VIEWER'": ("membership", CHANGED),
}


async def test_verify_reports_access_rights_changed_in_the_database(customer_desks, bank):
    admin = await customer_desks()
    other = await customer_desks(admin.team.customer, role="INITIATOR")
    made = await admin.post(PATH, NEW)
    await admin.post(
        "/api/v1/team/service-users/", {"name": "X", "scopes": ["pockets.read"], "public_key": new_key().pem}
    )
    await admin.ask("PUT", f"/api/v1/team/{await member_id_of(other)}/", {"role": "VIEWER"}, status=200)
    await admin.patch(f"{PATH}{made['id']}/", {"url": "https://93.184.215.15/"}, status=202)
    await expect_clean(bank)
    async with bank.pool.acquire() as conn:
        for damage, found in DAMAGES.items():
            transaction = conn.transaction()
            await transaction.start()
            await conn.execute(damage)
            report = await verify_bank(conn, market=bank.market, vault=bank.vault)
            await transaction.rollback()
            assert [(each.table, each.message) for each in report.findings] == [found], damage
            assert report.checked["membership (in no entry, not proven)"] == 1  # of the test's own administrator


def test_verify_reports_a_role_or_key_that_no_operator_granted(founded, database_dsn, tmp_path):
    own = customer(founded)
    assert founded("users", "add", *ANNA, "--customer", own, "--role", "VIEWER")[0] == 0
    pem = tmp_path / "key.pem"
    pem.write_text(new_key().pem)
    username = _fetch(database_dsn, "SELECT username FROM partner_user")[0]["username"]
    assert founded("partner", "add-key", username, str(pem))[0] == 0
    status, said = founded("verify")
    assert (status, "Not proven:" in said) == (0, True)
    for damage, table in (
        ("UPDATE membership SET role = 'ADMIN'", "membership"),
        ("UPDATE partner_key SET public_pem = 'another'", "partner_key"),
    ):
        _fetch(database_dsn, damage)
        status, said = founded("verify")
        assert (status, f"The first bad row is in {table}" in said) == (1, True), said
        _fetch(database_dsn, "UPDATE membership SET role = 'VIEWER'")
