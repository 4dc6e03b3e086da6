"""Expired rows and orphan files are removed, and no others."""

import os
from datetime import timedelta
from uuid import UUID

import asyncpg
from tests.support.oauth import SPA, company, member, program

from billfold.documents import store
from billfold.documents.ports import FileStore
from billfold.documents.rules import PROOF_OF_ACCOUNT
from billfold.identity.partners import credentials
from billfold.oauth import dpop, grants
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.background_work import list_failed
from billfold.platform.file_kinds import FileKind
from billfold.wiring.worker import ORPHAN_FILE_RETENTION, ROWS_PER_STATEMENT, delete_orphan_files, purge

CUSTOMER = UUID("01234567-89ab-8def-8123-456789abcdef")


async def named(bank, content):
    """A file that is kept and written down."""
    file, document_id, now = await bank.ports[FileStore].keep(content), ids.new(), await bank.now()
    async with bank.pool.acquire() as conn:
        await store.request_document(conn, CUSTOMER, document_id, type_=PROOF_OF_ACCOUNT, at=now)
        row = await store.get_document(conn, document_id)
        await store.put_file(conn, row, file, kind=FileKind.PDF, name="proof.pdf", invalid=None, at=now)
    return file


def age(bank, file, days):
    path = bank.settings.files_dir / file.key[:2] / file.key
    since = (wall_now() - timedelta(days=days)).timestamp()
    os.utime(path, (since, since))


async def test_files_of_interrupted_uploads_are_purged_after_a_week(bank):
    kept, cut_off = await named(bank, b"kept"), await bank.ports[FileStore].keep(b"cut off")
    young = await bank.ports[FileStore].keep(b"its row is being written")
    for file in (kept, cut_off):
        age(bank, file, ORPHAN_FILE_RETENTION.days + 1)

    assert await delete_orphan_files(bank.pool, bank.ports[FileStore], wall_now()) == 1

    left = await bank.ports[FileStore].list_stored(wall_now() + timedelta(days=1))
    assert left == sorted([kept.key, young.key])
    assert await bank.ports[FileStore].fetch(kept) == b"kept"


async def test_purge_removes_only_expired_rows(bank):
    now, conn = wall_now(), bank.pool
    anna = await member(conn, await company(conn))
    await program(conn)
    for ago in (0, 901):
        await grants.issue_access(
            conn,
            client_id="books",
            customer_id=anna.customer_id,
            user_id=anna.user_id,
            scopes=("openid",),
            now=now - timedelta(seconds=ago),
        )
        until = now + timedelta(seconds=20 - ago)
        assert await dpop.consume_proof(conn, SPA.thumbprint, f"jti {ago}", until=until)
        assert await credentials.consume_assertion(conn, issuer="books", jti=f"jti {ago}", expires_at=until)

    removed = await purge(bank.pool, now, attempts_days=30, requests_days=7)

    for table in ("access_token", "consumed_dpop_proof", "consumed_assertion"):
        assert (removed[table], await conn.fetchval(f"SELECT count(*) FROM {table}")) == (1, 1)
    assert not await dpop.consume_proof(conn, SPA.thumbprint, "jti 0", until=now)


OF_USERS = {
    "session": "session_hash, session_id, user_id, auth_methods, complete, authenticated_at, started_at, last_seen_at,"
    " ends_at, address, device) SELECT $1::text::bytea, gen_random_uuid(), $2, '{pwd}', true, $3, $3, $3, $3, '', ''",
    "passkey_challenge": "challenge, cookie_hash, expires_at) SELECT $1::text::bytea, $2::uuid::text::bytea, $3",
    "login_attempt": "subject, factor, failures, last_failed_at) SELECT gen_random_uuid(), 'code', 1, $3"
    " WHERE $1 <> $2::uuid::text",
    "known_device": "device_hash, user_id, last_seen_at) SELECT $1::text::bytea, $2, $3",
    "email_link": "link_hash, user_id, purpose, created_at, expires_at) SELECT $1::text::bytea, $2, 'reset', $3, $3",
    "invitation": "member_id, customer_id, email, first_name, last_name, role, created_at, expires_at, link_hash,"
    " link_expires_at) SELECT gen_random_uuid(), customer_id, $1 || '@b.example', 'A', 'B', 'ADMIN', $3::timestamptz,"
    " $3::timestamptz + interval '1 day', $1::text::bytea, $3::timestamptz FROM membership WHERE user_id = $2",
    "earlier_link": "link_hash, member_id, expires_at) SELECT $1::text::bytea, member_id, $3::timestamptz"
    " FROM invitation WHERE email = 'young@b.example' AND $2::uuid IS NOT NULL",
    "request_log": "id, tenant_id, requested_at, trace_id, method, path, operation, status, fields,"
    " has_idempotency_key, is_replayed, ip_address, duration_ms) SELECT gen_random_uuid(), $2, $3, gen_random_uuid(),"
    " 'GET', $1, 'x', 200, '{}', false, false, '', 1",
    "failed_work": "kind, item, tries, error, failed_at, again_at) SELECT $2::uuid::text, $1, 1, '', $3, $3",
}


async def test_purge_removes_expired_rows_of_users(bank):
    now, conn = wall_now(), bank.pool
    anna = await member(conn, await company(conn))
    for table, insert in OF_USERS.items():
        for name, at in (("old", now - timedelta(days=200)), ("young", now + timedelta(days=1))):
            await conn.execute(f"INSERT INTO {table} ({insert}", name, anna.user_id, at)
    removed = await purge(bank.pool, now, attempts_days=30, requests_days=7)
    for table in OF_USERS:
        assert (table, removed[table], await conn.fetchval(f"SELECT count(*) FROM {table}")) == (table, 1, 1)


async def test_purge_removes_any_number_of_expired_rows(bank):
    await bank.pool.execute(
        "INSERT INTO consumed_dpop_proof SELECT 'k', n::text::bytea, $1 FROM generate_series(1, $2) n",
        wall_now() - timedelta(seconds=1),
        2 * ROWS_PER_STATEMENT + 1,
    )
    removed = await purge(bank.pool, wall_now(), attempts_days=30, requests_days=7)
    assert removed["consumed_dpop_proof"] == 2 * ROWS_PER_STATEMENT + 1


async def test_a_table_that_cannot_be_purged_does_not_block_others(bank, bank_dsn):
    owner = await asyncpg.connect(bank_dsn)
    await owner.execute("ALTER TABLE session RENAME TO gone")
    await owner.execute("INSERT INTO consumed_dpop_proof VALUES ('k', 'x', now() - interval '1 hour')")
    await owner.close()
    assert (await purge(bank.pool, wall_now(), attempts_days=30, requests_days=7))["consumed_dpop_proof"] == 1
    assert [(each.kind, each.item) for each in await list_failed(bank.pool)] == [("purge", "session")]
