"""Rate limits and idempotency keys shared by several processes over one database."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.support.whole_bank import VAULT

from benchmarks.replicated_servers import ReplicatedServers
from billfold.http import admission
from billfold.http.admission import AdmissionRequest, IdempotencyStore
from billfold.http.responses import HttpResponse
from billfold.migrations import runner
from billfold.platform import ids
from billfold.platform.clock import wall_now
from billfold.platform.database.connection import connect
from billfold.platform.database.pool import create_pool
from billfold.platform.errors import InvariantError

ANSWER = HttpResponse(201, "application/json", b'{"run":1}')


@pytest.fixture
async def pools(database_dsn):
    opened = [await create_pool(database_dsn, max_size=4) for _ in range(2)]
    yield opened
    for pool in opened:
        await pool.close()


@pytest.fixture
async def two_stores(pools):
    """The admissions of two processes."""
    made = [IdempotencyStore(pool, VAULT, lease=timedelta(seconds=1)) for pool in pools]
    yield made
    for each in made:
        await each.close()


@pytest.fixture
def frozen_clock(monkeypatch):
    """Freeze the wall clock in the middle of a minute."""
    now = wall_now().replace(second=30)
    monkeypatch.setattr(admission, "wall_now", lambda: now)
    return now


def caller(*, rate=100, money=100):
    who = ids.new()
    return {"caller": who, "key_owner": who, "per_minute": rate, "money_per_minute": money}


def asked(who, *, key=None, fingerprint=b"one", claims=True, money=False, kind="all"):
    return AdmissionRequest(
        **who, key=key or ids.new(), fingerprint=fingerprint, claims=claims, moves_money=money, kind=kind
    )


def repeated_request(request, fingerprint):
    """Another request of the same caller under the same key."""
    return replace(request, fingerprint=fingerprint)


async def verdicts(requests):
    """Admit (admission, request) pairs concurrently and count the outcomes."""
    answers = await asyncio.gather(*(one.admit(request) for one, request in requests))
    return Counter(answer.verdict for answer in answers)


async def test_two_processes_share_one_rate_limit(two_stores, frozen_clock):
    who = caller(rate=100)
    found = await verdicts([(two_stores[n % 2], asked(who)) for n in range(150)])
    assert found == {"run": 100, "limited": 50}


async def test_two_processes_share_one_money_movement_limit(two_stores, frozen_clock):
    who = caller(rate=1000, money=60)
    found = await verdicts([(two_stores[n % 2], asked(who, money=n % 3 > 0)) for n in range(150)])
    assert found == {"run": 60 + 50, "limited": 40}


async def test_rate_limits_are_counted_per_caller_and_operation_group(two_stores, frozen_clock):
    callers = [caller(rate=5) for _ in range(10)]
    found = await verdicts([(two_stores[n % 2], asked(callers[n % 10])) for n in range(100)])
    assert found == {"run": 50, "limited": 50}
    who = caller(rate=5)
    asks = [(two_stores[n % 2], asked(who, kind="pockets" if n % 3 else "trades")) for n in range(30)]
    assert await verdicts(asks) == {"run": 10, "limited": 20}


async def test_the_remaining_rate_limit_counts_down_within_a_minute(two_stores, frozen_clock):
    who = caller(rate=3)
    rooms = [(await two_stores[0].admit(asked(who))).remaining for _ in range(4)]
    assert rooms == [2, 1, 0, 0]
    last = await two_stores[1].admit(asked(who))
    assert last.verdict == "limited"
    assert last.resets_at == int(frozen_clock.timestamp()) // 60 * 60 + 60


async def test_the_rate_limit_resets_each_minute(two_stores, frozen_clock, monkeypatch):
    who = caller(rate=1)
    assert await verdicts([(two_stores[0], asked(who)), (two_stores[1], asked(who))]) == {"run": 1, "limited": 1}
    monkeypatch.setattr(admission, "wall_now", lambda: frozen_clock + timedelta(minutes=1))
    assert (await two_stores[0].admit(asked(who))).verdict == "run"


@pytest.mark.parametrize("claims", [True, False])
async def test_a_rate_limited_idempotency_key_is_bound_and_can_be_retried(
    two_stores, frozen_clock, monkeypatch, claims
):
    who = caller(rate=1)
    await two_stores[0].admit(asked(who))
    refused = asked(who, claims=claims)
    assert (await two_stores[0].admit(refused)).verdict == "limited"
    monkeypatch.setattr(admission, "wall_now", lambda: frozen_clock + timedelta(minutes=1))
    who = who | {"per_minute": 9}
    assert (await two_stores[1].admit(asked(who, key=refused.key, fingerprint=b"two"))).verdict == "reused"
    assert (await two_stores[1].admit(replace(refused, per_minute=9))).verdict == "run"


async def test_no_idempotency_key_is_stored_far_over_the_rate_limit(two_stores, frozen_clock, pools):
    who = caller(rate=2)
    await verdicts([(two_stores[n % 2], asked(who)) for n in range(30)])
    assert await pools[0].fetchval("SELECT count(*) FROM idempotency_key") == 4


async def test_an_idempotency_key_is_shared_by_all_users_of_its_owner(two_stores):
    who, key = caller(), ids.new()
    colleague = who | {"caller": ids.new()}
    assert await verdicts([(two_stores[0], asked(who, key=key)), (two_stores[1], asked(colleague, key=key))]) == {
        "run": 1,
        "running": 1,
    }
    assert (await two_stores[0].admit(asked(colleague, key=key, fingerprint=b"two"))).verdict == "reused"


async def test_concurrent_requests_with_one_key_across_processes_run_once(two_stores):
    who, key = caller(), ids.new()
    found = await verdicts([(two_stores[n % 2], asked(who, key=key)) for n in range(20)])
    assert found == {"run": 1, "running": 19}


async def test_a_stored_response_is_replayed_by_a_different_process(two_stores, pools):
    who, key = caller(), ids.new()
    request = asked(who, key=key)
    assert (await two_stores[0].admit(request)).verdict == "run"
    assert (await two_stores[1].admit(request)).verdict == "running"
    two_stores[0].keep_response(request, ANSWER)
    await two_stores[0]._stored.settle()
    assert ANSWER.body not in await pools[0].fetchval("SELECT response_body FROM idempotency_key")
    for one in two_stores:
        again = await one.admit(request)
        assert (again.verdict, again.stored) == ("replay", ANSWER)
        assert (await one.admit(asked(who, key=key, fingerprint=b"two"))).verdict == "reused"


async def test_a_stored_response_moved_to_a_different_key_is_not_replayed(two_stores, pools):
    first, second = asked(caller()), asked(caller())
    for request in (first, second):
        await two_stores[0].admit(request)
        two_stores[0].keep_response(request, ANSWER)
    await two_stores[0]._stored.settle()
    swap = """UPDATE idempotency_key k SET response_body = o.response_body FROM idempotency_key o
 WHERE k.key = $1 AND o.key = $2"""
    await pools[0].execute(swap, first.key, second.key)
    with pytest.raises(InvariantError, match="moved"):
        await two_stores[1].admit(first)


async def test_a_response_is_replayed_immediately_by_its_own_process(two_stores):
    request = asked(caller())
    await two_stores[0].admit(request)
    two_stores[0].keep_response(request, ANSWER)
    assert (await two_stores[0].admit(request)).stored == ANSWER


async def test_the_response_of_an_unclaimed_read_is_stored(two_stores, pools):
    request = asked(caller(), claims=False)
    assert await verdicts([(two_stores[0], request), (two_stores[1], request)]) == {"run": 2}
    assert await pools[0].fetchval("SELECT count(*) FROM idempotency_key") == 0
    two_stores[0].keep_response(request, ANSWER)
    two_stores[1].keep_response(request, HttpResponse(200, "text/plain", b"another"))
    await two_stores[0]._stored.settle()
    assert (await two_stores[0].admit(request)).stored is not None
    assert await pools[0].fetchval("SELECT count(*) FROM idempotency_key") == 1


async def test_a_read_is_not_stored_under_a_key_claimed_by_a_different_request(two_stores):
    read = asked(caller(), claims=False)
    other = replace(repeated_request(read, b"two"), claims=True)
    assert (await two_stores[0].admit(read)).verdict == "run"
    assert (await two_stores[1].admit(other)).verdict == "run"
    two_stores[0].keep_response(read, ANSWER)
    await two_stores[0]._stored.settle()
    assert (await two_stores[0].admit(other)).verdict == "running"


@pytest.mark.parametrize("claims", [True, False])
async def test_a_released_key_can_be_retried_only_with_its_own_request(two_stores, claims):
    request = asked(caller(), claims=claims)
    await two_stores[0].admit(request)
    await two_stores[0].release(request)
    for one in two_stores:
        assert (await one.admit(repeated_request(request, b"two"))).verdict == "reused"
    assert (await two_stores[1].admit(request)).verdict == "run"


async def test_a_key_whose_lease_expired_without_a_response_runs_again(two_stores, pools):
    request = asked(caller())
    gone = IdempotencyStore(pools[0], VAULT, lease=timedelta(seconds=1))
    await gone.admit(request)
    await gone.close()
    assert (await two_stores[1].admit(request)).verdict == "running"
    other = repeated_request(request, b"two")
    assert (await two_stores[1].admit(other)).verdict == "reused"
    await asyncio.sleep(1.1)
    assert (await two_stores[1].admit(other)).verdict == "reused"
    assert (await two_stores[1].admit(request)).verdict == "run"


async def test_an_idempotency_key_expires_after_a_day(two_stores, pools, monkeypatch):
    request = asked(caller())
    await two_stores[0].admit(request)
    two_stores[0].keep_response(request, ANSWER)
    await two_stores[0]._stored.settle()
    later = wall_now() + timedelta(hours=24, seconds=1)
    monkeypatch.setattr(admission, "wall_now", lambda: later)
    other = repeated_request(request, b"two")
    assert (await two_stores[1].admit(other)).verdict == "run"


async def test_all_keys_of_a_large_batch_are_claimed(two_stores, pools):
    who = caller(rate=5000)
    found = await verdicts([(two_stores[n % 2], asked(who)) for n in range(1200)])
    assert found == {"run": 1200}
    assert await pools[0].fetchval("SELECT count(*) FROM idempotency_key") == 1200


@pytest.fixture
def servers(tmp_path_factory):
    """A primary and an asynchronous replica."""
    made = ReplicatedServers(tmp_path_factory.mktemp("replicated"), durable=False)
    made.start(synchronous=False)
    yield made
    made.stop()


async def test_a_response_lost_with_the_primary_is_not_stored_by_the_promoted_replica(servers):
    dsn = servers.address("billfold")
    conn = await connect(dsn)
    await runner.up(conn)
    await conn.close()
    pool = await create_pool(dsn)
    store = IdempotencyStore(pool, VAULT, lease=timedelta(0))
    stored, repeated = asked(caller()), asked(caller())
    for request in (stored, repeated):
        assert (await store.admit(request)).verdict == "run"
    servers.kill_primary()
    for request in (stored, repeated):
        store.keep_response(request, ANSWER)
    again = asyncio.create_task(store.admit(repeated))  # while its answer is only in memory
    await asyncio.to_thread(servers.promote_replica)
    assert (await again).verdict == "running"
    await store._stored.settle()
    for request in (stored, repeated):
        assert (await store.admit(request)).verdict == "run"
    await store.close()
    await pool.close()
