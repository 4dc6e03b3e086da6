"""Partners, secrets, users and features as they are made and changed."""

from datetime import timedelta

import pytest

from billfold.identity.partners import credentials, store
from billfold.identity.users import lockout
from billfold.platform import crypto, ids
from billfold.platform.clock import wall_now
from billfold.platform.crypto import Vault
from billfold.platform.errors import InvalidInput, InvariantError, NotFound, Refused

VAULT = Vault(bytes(32))


async def create_acme(conn, slug="acme"):
    return await credentials.create_partner(
        conn,
        VAULT,
        slug=slug,
        name="Acme",
        own_customer_id=ids.new(),
        rate_per_minute=300,
        money_per_minute=60,
        now=wall_now(),
        features=["wires", "cards", "wires"],
    )


async def token_of(conn, partner, name="acme-app"):
    user = await credentials.create_partner_user(
        conn, partner.partner_id, username=name, password="a long password", now=wall_now()
    )
    token, _ = await credentials.issue_token(conn, partner_id=partner.partner_id, user_id=user, now=wall_now())
    return crypto.hash_token(token)


async def secrets_at(conn, token_hash, now):
    await conn.execute("UPDATE partner_token SET expires_at = $1", now + timedelta(hours=1))
    found = await store.find_credential(conn, VAULT, token_hash, now=now)
    assert found is not None
    return [secret.decode() for secret in found.shared_secrets]


async def test_a_partner_is_found_by_its_slug(conn):
    partner = await create_acme(conn)
    found = await store.find_partner(conn, "acme")
    assert found is not None
    assert found.partner_id == partner.partner_id
    assert found.features == {"wires", "cards"}
    assert await store.find_partner(conn, "nobody") is None
    assert [each.slug for each in await store.list_partners(conn)] == ["acme"]


async def test_a_duplicate_partner_slug_is_refused(conn):
    await create_acme(conn)
    with pytest.raises(Refused):
        await create_acme(conn)


async def test_a_slug_that_is_not_a_host_name_is_refused(conn):
    for slug in ["", "Acme", "1acme", "a_b", "acme-", "a.b", "auth", "x" * 64]:
        with pytest.raises(InvalidInput):
            await create_acme(conn, slug)


async def test_a_partner_secret_is_returned_once_and_stored_encrypted(conn):
    partner = await create_acme(conn)
    stored = await conn.fetchrow("SELECT * FROM partner_secret")
    assert partner.shared_secret.encode() not in stored["sealed"]
    assert partner.shared_secret not in repr(partner)
    assert len(partner.shared_secret) >= 43


async def test_an_encrypted_partner_secret_opens_only_in_its_own_row(conn):
    partner = await create_acme(conn)
    other = await create_acme(conn, "other")
    await conn.execute(
        "UPDATE partner_secret s SET sealed = o.sealed FROM partner_secret o "
        "WHERE s.partner_id = $1 AND o.partner_id = $2",
        partner.partner_id,
        other.partner_id,
    )
    with pytest.raises(InvariantError):
        await store.find_credential(conn, VAULT, await token_of(conn, partner), now=wall_now())


async def test_at_most_two_partner_secrets_are_valid_during_rotation(conn):
    partner = await create_acme(conn)
    token_hash = await token_of(conn, partner)
    now = wall_now()
    second = await credentials.rotate_secret(conn, VAULT, partner.partner_id, now=now)
    assert await secrets_at(conn, token_hash, now) == [partner.shared_secret, second]
    later = now + timedelta(hours=1)
    third = await credentials.rotate_secret(conn, VAULT, partner.partner_id, now=later)
    assert await secrets_at(conn, token_hash, later) == [second, third]
    assert await secrets_at(conn, token_hash, later + timedelta(hours=24)) == [third]
    with pytest.raises(NotFound):
        await credentials.rotate_secret(conn, VAULT, ids.new(), now=now)


async def test_partner_features_are_enabled_and_disabled(conn):
    partner = await create_acme(conn)
    await credentials.set_feature(conn, partner.partner_id, "crypto", enabled=True)
    await credentials.set_feature(conn, partner.partner_id, "crypto", enabled=True)
    await credentials.set_feature(conn, partner.partner_id, "wires", enabled=False)
    found = await store.find_partner(conn, "acme")
    assert found is not None
    assert found.features == {"cards", "crypto"}
    with pytest.raises(NotFound):
        await credentials.set_feature(conn, ids.new(), "crypto", enabled=True)


async def test_changing_a_partner_password_revokes_tokens_and_clears_the_lockout(conn):
    partner = await create_acme(conn)
    token_hash = await token_of(conn, partner)
    user = await store.find_partner_user(conn, "acme-app")
    assert user is not None
    for _ in range(5):
        await lockout.begin_attempt(conn, lockout.partner_subject("acme-app"), wall_now())
    await credentials.set_partner_password(conn, user.user_id, "another long password")
    assert await store.find_credential(conn, VAULT, token_hash, now=wall_now()) is None
    assert (await lockout.begin_attempt(conn, lockout.partner_subject("acme-app"), wall_now())).wait_seconds == 0


async def test_a_partner_user_without_a_name_or_password_is_refused(conn):
    partner = await create_acme(conn)
    for name, password in [("", "long enough"), ("a", "short"), ("a\n", "b" * 20)]:
        with pytest.raises(InvalidInput):
            await credentials.create_partner_user(
                conn, partner.partner_id, username=name, password=password, now=wall_now()
            )


async def test_a_jwt_assertion_of_an_issuer_is_accepted_once(conn):
    now = wall_now()
    assert await credentials.consume_assertion(conn, issuer="a", jti="1", expires_at=now)
    assert not await credentials.consume_assertion(conn, issuer="a", jti="1", expires_at=now)
    assert await credentials.consume_assertion(conn, issuer="b", jti="1", expires_at=now)
