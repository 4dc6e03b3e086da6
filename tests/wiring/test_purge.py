"""Expired rows and orphan files are removed, and no others."""

import os
from datetime import timedelta
from uuid import UUID

from tests.support.oauth_clients import SPA, program
from tests.support.oauth_users import company, member

from billfold.access.oauth import access_tokens, dpop
from billfold.access.partners import credentials
from billfold.documents import store as document_store
from billfold.documents.ports import FileKind
from billfold.documents.rules import PROOF_OF_ACCOUNT
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.wiring.purge import ORPHAN_FILE_RETENTION, delete_orphan_files, purge

CUSTOMER = UUID("01234567-89ab-8def-8123-456789abcdef")


async def named(bank, content):
    """A file that is kept and written down."""
    file, document_id, now = await bank.files.keep(content), ids.new(), await bank.now()
    async with bank.pool.acquire() as conn:
        await document_store.request_document(conn, CUSTOMER, document_id, type_=PROOF_OF_ACCOUNT, at=now)
        row = await document_store.get_document(conn, document_id)
        await document_store.put_file(conn, row, file, kind=FileKind.PDF, name="proof.pdf", invalid=None, at=now)
    return file


def age(bank, file, days):
    path = bank.settings.files_dir / file.key[:2] / file.key
    since = (wall_now() - timedelta(days=days)).timestamp()
    os.utime(path, (since, since))


async def test_an_upload_that_was_cut_off_leaves_no_file_when_a_week_is_over(bank):
    kept, cut_off = await named(bank, b"kept"), await bank.files.keep(b"cut off")
    young = await bank.files.keep(b"its row is being written")
    for file in (kept, cut_off):
        age(bank, file, ORPHAN_FILE_RETENTION.days + 1)

    assert await delete_orphan_files(bank.pool, bank.files, wall_now()) == 1

    left = await bank.files.list_stored(wall_now() + timedelta(days=1))
    assert left == sorted([kept.key, young.key])
    assert await bank.files.fetch(kept) == b"kept"


async def test_expired_rows_are_removed_and_others_stay(bank):
    now, conn = wall_now(), bank.pool
    anna = await member(conn, await company(conn))
    await program(conn)
    for ago in (0, 901):
        await access_tokens.issue_access(
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

    removed = await purge(bank.pool, now, attempts_days=30)

    for table in ("access_token", "consumed_dpop_proof", "consumed_assertion"):
        assert (removed[table], await conn.fetchval(f"SELECT count(*) FROM {table}")) == (1, 1)
    assert not await dpop.consume_proof(conn, SPA.thumbprint, "jti 0", until=now)
