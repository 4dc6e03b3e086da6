"""The upgrade of a copied database before a sandbox opens it as its bank."""

from typing import Any

from billfold.sandbox.control.tasks import RunningSandbox

MAY = "SELECT has_database_privilege('billfold_app', current_database(), 'TEMPORARY')"


async def test_upgrading_a_copied_database_restricts_its_privileges(database_dsn, conn):
    assert await conn.fetchval(MAY) is True
    unused: Any = None
    sandbox = RunningSandbox(unused, unused, unused, supervisor=unused, copies=unused, saved=unused)
    await sandbox.upgrade(database_dsn)
    assert await conn.fetchval(MAY) is False
