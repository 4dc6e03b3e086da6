"""Run a bank under kills, write down what its clients saw, and have porcupine check that history.

usage: python -m tools.linearizability [--minutes 30] [--seed 1] [--folder FOLDER]
       python -m tools.linearizability --check HISTORY
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random

import asyncpg
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tools.linearizability.checker import check
from tools.linearizability.clients import Caller, Client, History, Pair, settle
from tools.linearizability.processes import POSTGRES, SERVE, WORKER, Processes

from benchmarks.bank_workload import SLUG, add_counterparties, create_partner
from benchmarks.dataset import DEPOSIT_CENTS, create_customers, deposit, pocket_of, submit_commands
from billfold.identity.partners import credentials
from billfold.ledger.bank import Bank
from billfold.platform.clock import wall_now
from billfold.verify.runner import verify_bank

PAIRS, CLIENTS = 4, 3
"""The pairs of Pockets, and the clients of each."""
QUIET_SECONDS, PAUSED_SECONDS = (0.2, 4.0), (0.5, 8.0)
AT_ONCE, WHOLE, PAUSES = 0.25, 0.2, 0.25
"""The shares of faults that do not wait for the end of the last, of kills of a whole server, and of pauses."""


async def create_bank(processes: Processes) -> tuple[Caller, list[Pair]]:
    """Found a bank of pairs of customers that may pay each other; return how its partner calls."""
    async with processes.found() as bank:
        portals = await create_customers(bank, range(2 * PAIRS))
        await submit_commands(bank, [deposit(nth, each, DEPOSIT_CENTS, "first") for nth, each in portals.items()])
        payees = await add_counterparties(bank, [(nth, nth ^ 1) for nth in portals])
        caller = await _create_caller(bank, processes.port)
    pairs = [
        Pair(n, (pocket_of(2 * n), pocket_of(2 * n + 1)), (payees[2 * n], payees[2 * n + 1]), DEPOSIT_CENTS)
        for n in range(PAIRS)
    ]
    return caller, pairs


async def _create_caller(bank: Bank, port: int) -> Caller:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    made = await create_partner(bank)
    user = await bank.pool.fetchval("SELECT user_id FROM partner_user WHERE username = $1", SLUG)
    kid = await credentials.register_partner_key(
        bank.pool, user, algorithm="ES256", public_pem=public.decode(), now=wall_now()
    )
    return Caller(f"https://{made.host}:{port}", SLUG, made.secret, private.decode(), kid)


class Faults:
    """Kills and pauses, drawn from a seed."""

    def __init__(self, seed: str, processes: Processes, history: History) -> None:
        self._random, self._processes, self._history = Random(seed), processes, history
        self.counts: Counter[str] = Counter()

    def run(self, until: float, clients: list[Future[None]]) -> None:
        """Do one after the other, mostly once the bank has acknowledged a transfer since the last."""
        while time.monotonic() < until:
            time.sleep(self._random.uniform(*QUIET_SECONDS))
            self._do(self._random.choice((POSTGRES, SERVE, WORKER)))
            if self._random.random() > AT_ONCE:
                self.await_acknowledged()
            for each in clients:
                if each.done():
                    each.result()

    def await_acknowledged(self) -> None:
        """Return when one more transfer is acknowledged."""
        known = len(self._history.acknowledged)
        self._processes.until(lambda: len(self._history.acknowledged) > known)

    def _do(self, name: str) -> None:
        began = time.monotonic_ns()
        if self._random.random() < PAUSES:
            kind = f"pause {name}"
            self._processes.pause(name, self._random.uniform(*PAUSED_SECONDS))
        else:
            whole = name == SERVE and self._random.random() < WHOLE
            kind = f"kill {name}{' whole' if whole else ''}"
            self._processes.kill(name, whole=whole)
        self.counts[kind] += 1
        self._history.write_fault(kind, began)


def run(folder: Path, *, seed: str, minutes: float) -> Path:
    """Run the bank, its clients and the faults; return the history."""
    processes = Processes(folder / "bank")
    path = folder / "history.jsonl"
    history = History(path)
    try:
        caller, pairs = asyncio.run(create_bank(processes))
        for name in (SERVE, WORKER):
            processes.start(name)
        processes.await_healthy()
        until = time.monotonic() + minutes * 60
        clients = [Client(n, seed, processes, caller, history) for n in range(PAIRS * CLIENTS + 1)]
        faults = Faults(seed, processes, history)
        ended = False
        with ThreadPoolExecutor(len(clients)) as threads:
            running = [threads.submit(each.run, pairs[n % PAIRS], lambda: ended) for n, each in enumerate(clients[:-1])]
            try:
                faults.run(until, running)
                faults.await_acknowledged()
            finally:
                ended = True
        for each in running:
            each.result()
        settle(clients[-1], pairs, history, processes)
        processes.terminate()
        say(f"faults: {dict(sorted(faults.counts.items()))}, {faults.counts.total()} in all")
        say(f"requests: {dict(history.counts.most_common())}, transfers acknowledged: {len(history.acknowledged)}")
        say(f"verify: {asyncio.run(_verify(processes.dsn, history))}")
    finally:
        processes.close()
        history.close()
    return path


async def _verify(dsn: str, history: History) -> str:
    conn = await asyncpg.connect(dsn)
    try:
        report = await verify_bank(conn)
        rows = await conn.fetch("SELECT transfer_id::text FROM transfer WHERE status = 'COMPLETED'")
    finally:
        await conn.close()
    assert report.is_clean, report.findings
    assert history.acknowledged.keys() <= {row[0] for row in rows}, "an acknowledged transfer is lost"
    return f"{sum(report.checked.values())} rows, clean"


def main() -> int:
    """Run and check, or check a history of before; return 0 if it is linearizable."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--folder", type=Path, help="for the history and the bank; default: a new one")
    parser.add_argument("--check", type=Path, help="only check this history")
    told = parser.parse_args()
    if told.check is not None:
        return check(told.check)
    folder = told.folder or Path(tempfile.mkdtemp(prefix="linearizability-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # Postgres may run as another user
    say(f"seed {told.seed}, {told.minutes:g} minutes, {folder}")
    path = run(folder, seed=told.seed, minutes=told.minutes)
    failed = check(path)
    if not failed:
        shutil.rmtree(folder / "bank")
    return failed


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
