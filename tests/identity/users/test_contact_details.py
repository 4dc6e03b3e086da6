"""E-mail addresses and telephone numbers of persons: sealed in their rows, found in any spelling, never moved."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from tests.support.oauth import company, member
from tests.support.whole_bank import VAULT

from billfold.identity.members.store import create_user
from billfold.identity.users.contact_details import reseal_contact_details
from billfold.identity.users.lockout import password_subject
from billfold.identity.users.store import find_user, find_user_by_email, list_users
from billfold.platform.crypto import Vault
from billfold.platform.errors import InvariantError, Refused
from billfold.verify.runner import verify_bank

NOW = datetime(2026, 3, 2, 15, tzinfo=UTC)
ROWS = "SELECT email, phone_number FROM user_account ORDER BY user_id"
PLAIN = "anna@xn--bcher-kva.example"


def enrol(bank, email, phone_number=None):
    return create_user(
        bank.pool, bank.vault, email=email, first_name="A", last_name="L", phone_number=phone_number, now=NOW
    )


def with_vault(bank, vault):
    return SimpleNamespace(pool=bank.pool, vault=vault)


async def find_user_ids(bank, *spellings):
    users = [await find_user_by_email(bank.pool, bank.vault, each) for each in spellings]
    return {user and user.user_id for user in users}


async def damaged_user_ids(bank):
    async with bank.pool.acquire() as conn:
        report = await verify_bank(conn, market=bank.market, vault=VAULT)
    return {each.key["user_id"] for each in report.findings if each.table == "user_account"}


async def test_an_email_address_identifies_one_user_in_every_spelling(bank):
    spellings = ("Anna@Bücher.example", " ANNA@BU\u0308CHER.EXAMPLE ", "anna@\uff22ücher.example", PLAIN)
    user_id = await enrol(bank, spellings[0], "+12025550123")
    for each in spellings:
        with pytest.raises(Refused):
            await enrol(bank, each)
    assert await find_user_ids(bank, *spellings) == {user_id}
    assert await find_user_ids(bank, "anna@bucher.example", "anna", "") == {None}
    assert len({password_subject(bank.vault, each) for each in spellings}) == 1, "no spelling has tries of its own"
    (row,) = await bank.pool.fetch(ROWS)
    assert all(each.startswith("sealed:") for each in row)
    user = await find_user(bank.pool, bank.vault, user_id)
    assert user
    assert (user.email, user.phone_number) == (PLAIN, "+12025550123")


async def test_contact_details_moved_between_users_are_refused_and_reported(bank):
    one, two = await enrol(bank, "one@b.example", "+12025550123"), await enrol(bank, "two@b.example", "+12025550124")
    kept = await bank.pool.fetch("SELECT user_id, email, email_index, phone_number FROM user_account")
    for columns in ("email", "phone_number", "email_index", "email, email_index", "email_index, email, phone_number"):
        await bank.pool.execute("UPDATE user_account SET email_index = NULL, email = user_id || '@b.example'")
        for row, other in zip(kept, reversed(kept), strict=True):
            moved = dict(row) | {name: other[name] for name in columns.split(", ")}
            await bank.pool.execute(
                "UPDATE user_account SET email = $2, email_index = $3, phone_number = $4 WHERE user_id = $1",
                *moved.values(),
            )
        for email in ("one@b.example", "two@b.example"):
            with pytest.raises(InvariantError):
                await find_user_by_email(bank.pool, bank.vault, email)
        assert await damaged_user_ids(bank) == {one, two}


async def test_users_are_found_before_during_and_after_sealing_of_contact_details(bank):
    customer_id = await company(bank.pool)
    first = await member(bank.pool, customer_id, email=PLAIN)
    second = await member(bank.pool, customer_id, email="bo@b.example")
    plain = "UPDATE user_account SET email = $2, email_index = NULL, phone_number = '+12025550123' WHERE user_id = $1"
    for each, email in ((first, PLAIN), (second, "bo@b.example")):
        await bank.pool.execute(plain, each.user_id, email)

    async def all_is_well():
        assert await find_user_ids(bank, "ANNA@bücher.example") == {first.user_id}
        assert await find_user_ids(bank, "Bo@b.example") == {second.user_id}
        for email in ("anna@Bücher.example", "BO@b.example"):
            with pytest.raises(Refused):
                await enrol(bank, email)
        assert [each.email for each in await list_users(bank.pool, bank.vault)] == [PLAIN, "bo@b.example"]
        assert await damaged_user_ids(bank) == set()

    await all_is_well()
    assert await reseal_contact_details(bank, lambda _: None) == 2
    await bank.pool.execute(plain, second.user_id, "bo@b.example")
    await all_is_well()
    assert [await reseal_contact_details(bank, lambda _: None) for _ in range(2)] == [1, 0]
    await all_is_well()
    assert not [value for row in await bank.pool.fetch(ROWS) for value in row if not value.startswith("sealed:")]


async def test_users_are_found_and_resealed_after_a_key_change(bank):
    former_key, key = bytes(range(50, 82)), bytes(range(32))
    vaults = Vault(former_key), Vault(key, retired=[former_key]), Vault(key)
    former, changed, new_alone = [with_vault(bank, each) for each in vaults]
    user_id = await enrol(former, PLAIN, "+12025550123")

    assert await find_user_ids(changed, PLAIN) == {user_id}
    with pytest.raises(Refused):
        await enrol(changed, "Anna@bücher.example")
    assert [await reseal_contact_details(changed, lambda _: None) for _ in range(2)] == [1, 0]
    assert await find_user_ids(new_alone, PLAIN) == {user_id}
    assert await find_user_ids(former, PLAIN) == {None}
