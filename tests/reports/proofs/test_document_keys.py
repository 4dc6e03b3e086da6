"""The keys that documents are signed with: published for good, each used from its own moment on."""

from __future__ import annotations

from datetime import timedelta

import asyncpg
import msgspec
import pytest
from tests.support.world import PartnerClient

from billfold.platform.errors import InvalidInput, NotFound
from billfold.reports.proofs import signatures
from billfold.reports.proofs.signatures import (
    KEYS_PATH,
    RevokedKey,
    Unproven,
    jwks_document,
    parse_keys,
    refuse_revoked,
)


async def test_a_document_is_signed_with_the_key_active_at_its_time(bank):
    now = await bank.now()
    first = await signatures.get_document_key(bank.pool, bank.vault, now)
    second = await signatures.rotate_document_key(bank.pool, bank.vault, now)
    changes_at = now + signatures.PUBLICATION_LEAD
    moments = (now - timedelta(days=400), now, changes_at - timedelta(seconds=1), changes_at, now + timedelta(days=9))
    used = [(await signatures.get_document_key(bank.pool, bank.vault, each)).key_id for each in moments]

    assert used == [first.key_id] * 3 + [second] * 2
    published = await signatures.list_public_keys(bank.pool)
    assert [each.key_id for each in published] == [first.key_id, second]
    for statement in ("DELETE FROM document_key", "UPDATE document_key SET active_at = active_at"):
        with pytest.raises(asyncpg.PostgresError):
            await bank.pool.execute(statement)


async def test_a_revoked_document_key_is_published_as_revoked_and_refused_for_later_documents(bank, customer_desk):
    now = (await bank.now()).replace(microsecond=0)
    first = await signatures.get_document_key(bank.pool, bank.vault, now)

    async def revoke(key_id, at):
        return await signatures.revoke_document_key(
            bank.pool, bank.vault, key_id, revoked_at=at, reason="stolen", now=now
        )

    with pytest.raises(InvalidInput):
        await revoke(first.key_id, now + timedelta(seconds=1))
    with pytest.raises(NotFound):
        await revoke("A" * 43, now)
    since = now - timedelta(hours=2)
    second = await revoke(first.key_id, since)
    with pytest.raises(InvalidInput):
        await revoke(first.key_id, now)

    used = [
        (await signatures.get_document_key(bank.pool, bank.vault, each)).key_id
        for each in (since - timedelta(seconds=1), since, now, now + timedelta(days=400))
    ]
    assert used == [first.key_id, second, second, second]
    published = parse_keys((await customer_desk.http.get(KEYS_PATH)).content)
    assert [(each.key_id, each.revoked_at) for each in published] == [(first.key_id, since), (second, None)]
    refuse_revoked(published, first.key_id, since - timedelta(seconds=1))
    refuse_revoked(published, second, now)
    with pytest.raises(RevokedKey):
        refuse_revoked(published, first.key_id, since)


async def test_the_document_keys_are_published_by_both_apis(bank, customer_world, customer_desk):
    client = PartnerClient(customer_world.app, customer_world.partner)
    partner = await client.http.get(KEYS_PATH)
    await client.close()
    assert partner.status_code == 200
    assert partner.headers["cache-control"] == "public, max-age=600"
    key = await signatures.get_document_key(bank.pool, bank.vault, await bank.now())
    assert partner.json() == (await customer_desk.http.get(KEYS_PATH)).json() == jwks_document([key.public])
    assert parse_keys(partner.content) == [key.public]
    assert "d" not in partner.json()["keys"][0]


async def test_a_key_file_with_a_mismatched_key_id_is_refused_as_forged(bank):
    now = await bank.now()
    real = await signatures.get_document_key(bank.pool, bank.vault, now)
    await signatures.rotate_document_key(bank.pool, bank.vault, now)
    first, second = jwks_document(await signatures.list_public_keys(bank.pool))["keys"]
    with pytest.raises(Unproven, match="forged"):
        parse_keys(msgspec.json.encode({"keys": [{**second, "kid": real.key_id}]}))
    assert parse_keys(msgspec.json.encode(first)) == [real.public]
