"""Real processes under `kill -9` and pauses: the server, the worker, Postgres; and the checker of their history.

The checker accepts a good history, and refuses each that no order of its requests explains.
"""

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from tools.linearizability.__main__ import run
from tools.linearizability.checker import FOLDER, check, find_go

SEED = os.environ.get("BILLFOLD_KILLS_SEED", "7")
MINUTES = float(os.environ.get("BILLFOLD_KILLS_MINUTES", "0.1"))

ONE, TWO, THREE = "transfer-1", "transfer-2", "transfer-3"


def transfer(transfer_id, cents, call, returned, answer="COMPLETED"):
    """Pocket 0 pays Pocket 1; without an instant of return the outcome is unknown."""
    answer = None if returned is None else answer
    return {"do": "transfer", "id": transfer_id, "side": 0, "cents": cents, **asked(call, returned, answer)}


def look(transfer_id, call, answer):
    return {"do": "look", "id": transfer_id, **asked(call, call + 1, answer)}


def totals(call, paid, received=None):
    return {"do": "totals", **asked(call, call + 1, [[0, paid], [paid if received is None else received, 0]])}


def newest(call, *transfer_ids):
    return {"do": "newest", "side": 1, **asked(call, call + 1, transfer_ids)}


def asked(call, returned, answer):
    return {"client": 0, "pair": 0, "call": call, "return": returned, "answer": answer}


PAID = [transfer(ONE, 100, 0, 10), transfer(TWO, 30, 20, None), look(TWO, 30, "NONE"), transfer(TWO, 30, 40, 50)]
LATER = [*PAID, transfer(THREE, 7, 60, 65, "PENDING")]

GOOD = {
    "sequential": [*PAID, totals(60, 130), newest(70, TWO, ONE), look(ONE, 80, "COMPLETED")],
    "read during a transfer": [*PAID, totals(5, 0), totals(7, 100)],
    "never answered and late": [*PAID, transfer(THREE, 7, 60, None), totals(70, 130), totals(80, 137)],
    "never answered and never done": [*PAID, transfer(THREE, 7, 60, None), totals(70, 130)],
    "made by the worker": [*LATER, totals(70, 130), look(THREE, 75, "PENDING"), totals(80, 137)],
    "answered again as before": [*LATER, look(THREE, 70, "COMPLETED"), transfer(THREE, 7, 80, 85, "PENDING")],
}
BAD = {
    "stale read of totals": [*PAID, totals(15, 0)],
    "stale read of the list": [*PAID, newest(60, ONE)],
    "acknowledged transfer lost": [*PAID, totals(15, 100), totals(60, 100)],
    "transfer doubled": [*PAID, totals(60, 160)],
    "transfer doubled in the list": [*PAID, newest(60, TWO, TWO, ONE)],
    "half of a transfer": [*PAID, totals(25, 130, 100)],
    "wrong cents": [*PAID, totals(60, 131)],
    "unanswered transfer undone": [*PAID, transfer(THREE, 7, 60, None), totals(70, 137), totals(80, 130)],
    "status not found after its answer": [*PAID, look(TWO, 60, "NONE")],
    "status that goes back": [*LATER, look(THREE, 70, "COMPLETED"), look(THREE, 80, "PENDING")],
    "money before the request": [*PAID, totals(32, 130), look(TWO, 35, "NONE")],
    "money that only the worker's status lacks": [*LATER, totals(70, 137), newest(80, TWO, ONE)],
}


@pytest.fixture
def folder(tmp_path):
    memory = Path("/dev/shm")
    place = memory / f"billfold-kills-{os.getpid()}" if memory.is_dir() else tmp_path
    place.mkdir(exist_ok=True)
    place.chmod(0o755)  # Postgres may run as another user
    yield place
    shutil.rmtree(place, ignore_errors=True)


def test_killed_processes_neither_lose_nor_duplicate_acknowledged_commands(folder):
    print(f"BILLFOLD_KILLS_SEED={SEED}")
    history = run(folder, seed=SEED, minutes=MINUTES)
    assert find_go() is None or check(history) == 0


@pytest.fixture(scope="module")
def _go():
    go = find_go()
    if go is None:
        pytest.skip("the checker is a program in Go, which is not installed")
    if subprocess.run([go, "mod", "download"], check=False, cwd=FOLDER, capture_output=True).returncode:
        pytest.skip("porcupine cannot be downloaded")


@pytest.mark.usefixtures("_go")
@pytest.mark.parametrize("name", GOOD)
def test_history_that_an_order_explains_is_linearizable(name, tmp_path):
    assert check(written(tmp_path, GOOD[name])) == 0


@pytest.mark.usefixtures("_go")
@pytest.mark.parametrize("name", BAD)
def test_history_that_no_order_explains_is_refused_and_drawn(name, tmp_path):
    path = written(tmp_path, [*BAD[name], {"do": "fault", "kind": "kill serve", "call": 1, "return": 2}])
    assert check(path) == 1
    assert "kill serve" in path.with_suffix(".html").read_text()


def written(folder, requests):
    path = folder / "history.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in requests))
    return path
