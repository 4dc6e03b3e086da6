"""What a sandbox does to a copy of its bank before that is the bank."""

from typing import Any

from billfold.sandbox.control.tasks import RunningSandbox

MAY = "SELECT has_database_privilege('billfold_app', current_database(), 'TEMPORARY')"


async def test_a_copy_at_the_schema_of_this_release_gets_the_rights_of_the_database_too(database_dsn, conn):
    assert await conn.fetchval(MAY) is True
    unused: Any = None
    sandbox = RunningSandbox(unused, unused, unused, supervisor=unused, copies=unused, saved=unused)
    await sandbox.upgrade(database_dsn)
    assert await conn.fetchval(MAY) is False
