"""Master keys on other machines, as their servers answer: a wrapped key is bound to its subject and its master key."""

import asyncio
import base64
import json
import socket
import time
from uuid import UUID

import httpx
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from moto import mock_aws

from billfold.data_keys import kms as kms_module
from billfold.data_keys import vault_transit
from billfold.data_keys.keys import DataKeys
from billfold.data_keys.kms import (
    PAUSE_SECONDS,
    AwsKmsMasterKey,
    FileMasterKey,
    MasterKeys,
    WrappedKey,
)
from billfold.data_keys.vault_transit import VaultTransitMasterKey
from billfold.platform.crypto import Vault
from billfold.platform.database.pool import APP_ROLE, create_pool
from billfold.platform.errors import InvariantError, Unavailable

ACME, BETA = UUID(int=1), UUID(int=2)
KEY = bytes(range(32))


def transit_server(request):
    """A server that responds like the transit engine of Vault 1.19, with bodies from its documentation."""
    cipher, body = AESGCM(bytes(32)), json.loads(request.content)
    if request.headers["X-Vault-Token"] != "s.right":
        return httpx.Response(403, json={"errors": ["permission denied"]})
    aad = base64.b64decode(body["associated_data"])
    match request.url.path.split("/")[-2:]:
        case ["encrypt", "billfold"]:
            ciphertext = base64.b64encode(
                bytes(12) + cipher.encrypt(bytes(12), base64.b64decode(body["plaintext"]), aad)
            )
            return httpx.Response(
                200, json={"data": {"ciphertext": f"vault:v1:{ciphertext.decode()}", "key_version": 1}}
            )
        case ["decrypt", "billfold"]:
            try:
                sealed = base64.b64decode(body["ciphertext"].removeprefix("vault:v1:"))
                plain = cipher.decrypt(sealed[:12], sealed[12:], aad)
            except (InvalidTag, ValueError):
                return httpx.Response(400, json={"errors": ["cipher: message authentication failed"]})
            return httpx.Response(200, json={"data": {"plaintext": base64.b64encode(plain).decode()}})
        case _:
            return httpx.Response(400, json={"errors": ["encryption key not found"]})


def transit(handler=transit_server, token="s.right"):
    transport = httpx.MockTransport(handler)
    return VaultTransitMasterKey("transit/billfold", url="https://vault.example", token=token, transport=transport)


@pytest.fixture
def kms(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        key_id = AwsKmsMasterKey("none")._client.create_key()["KeyMetadata"]["KeyId"]
        yield AwsKmsMasterKey(key_id)


@pytest.fixture(params=["vault", "kms"])
def master(request):
    return transit() if request.param == "vault" else request.getfixturevalue("kms")


async def test_unwrapping_a_key_for_a_different_subject_or_after_tampering_is_refused(master):
    stored = await master.wrap(ACME, KEY)

    assert KEY not in stored.wrapped
    assert stored.master_key == master.name
    assert await master.unwrap(ACME, stored) == KEY
    altered = WrappedKey(stored.wrapped[:-8] + b"AAAAAAA=", stored.master_key)
    for subject_id, wrapped in ((BETA, stored), (ACME, altered)):
        with pytest.raises(InvariantError):
            await master.unwrap(subject_id, wrapped)


async def test_an_unreachable_or_refusing_master_key_server_raises_unavailable(kms):
    def away(request):
        raise httpx.ConnectError("no route", request=request)

    for master in (transit(away), transit(token="s.other"), transit(lambda _: httpx.Response(503))):
        with pytest.raises(Unavailable):
            await master.wrap(ACME, KEY)
    with pytest.raises(Unavailable, match="NotFoundException"):
        await AwsKmsMasterKey("11111111-2222-3333-4444-555555555555").wrap(ACME, KEY)


@pytest.fixture
def silent_port():
    """A port that accepts connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("kind", ["vault", "kms"])
async def test_a_master_key_server_that_hangs_delays_one_caller_at_a_time(silent_port, kind, monkeypatch):
    for module in (kms_module, vault_transit):
        monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.5)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    url = f"http://127.0.0.1:{silent_port}"
    hanging = (
        VaultTransitMasterKey("billfold", url=url, token="s.1")
        if kind == "vault"
        else AwsKmsMasterKey("key", endpoint_url=url)
    )
    now, calls = 0.0, []

    wrap = type(hanging).wrap

    async def counted(self, *given):
        calls.append(given)
        return await wrap(self, *given)

    monkeypatch.setattr(type(hanging), "wrap", counted)
    keys = MasterKeys([hanging], clock=lambda: now + time.monotonic() * 0.01)
    monkeypatch.setattr(kms_module, "SLOW_SECONDS", 0.003)

    async def callers(count):
        refused = await asyncio.gather(*(keys.wrap(ACME, KEY) for _ in range(count)), return_exceptions=True)
        assert {type(each) for each in refused} == {Unavailable}
        return len(calls)

    assert await callers(1) == 1
    assert await callers(20) == 1
    now += PAUSE_SECONDS
    assert await callers(20) == 2, "one of them finds out"


async def test_a_bank_migrates_from_the_file_master_key_to_a_different_one(database_dsn, master):
    file = FileMasterKey(Vault(KEY))
    async with await create_pool(database_dsn, role=APP_ROLE) as pool:
        sealed = await DataKeys(file).seal(pool, ACME, b"12-3456789", b"place")
        both = MasterKeys([master, file])

        assert await DataKeys(both).open(pool, ACME, sealed, b"place") == b"12-3456789"
        await DataKeys(both).of(pool, BETA)
        assert await pool.fetchval("SELECT master_key FROM data_key WHERE subject_id = $1", BETA) == master.name
        with pytest.raises(InvariantError, match="not among the bank's"):
            await DataKeys(MasterKeys([master])).open(pool, ACME, sealed, b"place")
