"""Rotation of the master key while the bank is in use: done once, after which the former key opens nothing."""

import asyncio
import base64
import secrets
from uuid import UUID

import pytest

from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import FileMasterKey, MasterKeys
from billfold.data_keys.rotation import rotation
from billfold.platform.crypto import Vault
from billfold.platform.database.pool import APP_ROLE, create_pool
from billfold.platform.errors import InvariantError

OLD, NEW = bytes(range(32)), bytes(range(100, 132))
SUBJECTS = [UUID(int=number) for number in range(1, 451)]


def master(key, *retired):
    return MasterKeys([FileMasterKey(Vault(key, retired=retired))])


@pytest.fixture
async def pool(database_dsn):
    async with await create_pool(database_dsn, max_size=20, role=APP_ROLE) as opened:
        yield opened


async def rotate(pool, key):
    async with rotation(pool, key) as steps:
        return None if steps is None else [step async for step in steps][-1]


async def test_data_keys_are_rewrapped_during_concurrent_use_creation_and_destruction(pool):
    before, both = DataKeys(master(OLD)), master(NEW, OLD)
    sealed = {each: await before.seal(pool, each, each.bytes, b"place") for each in SUBJECTS}
    serving, fresh = DataKeys(both, size=1), UUID(int=9_999)

    async with rotation(pool, both) as steps:
        assert steps is not None
        started = await anext(steps)
        assert (started.done, started.total) == (0, 450)
        assert await rotate(pool, both) is None, "one at a time"
        assert (await anext(steps)).done == 200  # and it is stopped
    await serving.shred(pool, SUBJECTS[-1], (await pool.fetchval("SELECT now()")))
    done, made = await asyncio.gather(rotate(pool, both), use_but_last(serving, pool, sealed, fresh))
    assert (done.done, done.damaged) == (249, ())

    after = DataKeys(master(NEW))
    for each in SUBJECTS[:-1]:
        assert await after.open(pool, each, sealed[each], b"place") == each.bytes
    assert await after.open(pool, fresh, made, b"place") == b"new"
    with pytest.raises(InvariantError):
        await DataKeys(master(OLD)).open(pool, SUBJECTS[0], sealed[SUBJECTS[0]], b"place")


async def use_but_last(serving, pool, sealed, fresh):
    for each in reversed(SUBJECTS[:-1]):
        assert await serving.open(pool, each, sealed[each], b"place") == each.bytes
    return await serving.seal(pool, fresh, b"new", b"place")


async def test_rotation_reports_a_damaged_key_and_rewraps_the_others(pool):
    for each in SUBJECTS[:3]:
        await DataKeys(master(OLD)).of(pool, each)
    await pool.execute("UPDATE data_key SET wrapped = '\\x01' WHERE subject_id = $1", SUBJECTS[1])

    done = await rotate(pool, master(NEW, OLD))

    assert (done.done, done.damaged) == (2, (SUBJECTS[1],))


def test_keys_rotate_reports_counts_and_requires_the_former_key(founded, tmp_path):
    new = {"BILLFOLD_ENCRYPTION_KEY": base64.b64encode(secrets.token_bytes(32)).decode()}
    founded("partner", "create", "acme")
    state, text = founded("keys", "status")
    assert (state, "yes" in text) == (0, True), text
    old = text.split("file:")[1][:8]

    assert "not the key of the bank" in founded("keys", "rotate", **new)[1]
    # The first key of this bank lies in its folder; from now on the settings name it as the earlier one.
    retired = new | {
        "BILLFOLD_RETIRED_ENCRYPTION_KEYS": base64.b64encode((tmp_path / "encryption.key").read_bytes()).decode()
    }
    state, text = founded("keys", "rotate", **retired)
    assert (state, "data keys are wrapped by file:" in text) == (0, True), text
    assert " 1 secrets are resealed" in text  # of the partner; it opens under the new key alone
    assert "0 secrets are resealed" in founded("keys", "rotate", **retired)[1]
    assert f"file:{old}" not in founded("keys", "status", **retired)[1]
    assert "data_key" in founded("verify", **retired)[1]
    status, text = founded("keys", "status", **new | {"BILLFOLD_MASTER_KEYS": "vault-transit:transit/billfold"})
    assert (status, "BILLFOLD_MASTER_KEY_URL" in text) == (1, True)
