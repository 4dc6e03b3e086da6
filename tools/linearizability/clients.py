"""Clients of the Partner API that write down what they asked, what was answered, and between which instants.

Each line of a history is one request as JSON: `do` is `transfer`, `look`, `totals` or `newest`; `call` and `return`
are in nanoseconds of one monotonic clock; without an answer the outcome is unknown.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any
from uuid import UUID

import httpx
import msgspec
from tools.linearizability.processes import Processes

from billfold_client.errors import ApiError
from billfold_client.local import local_client
from billfold_client.partner import PartnerApi
from billfold_client.signing import PartnerAuth

ANSWER_SECONDS = 5.0
AGAIN_SECONDS = 0.2
NEWEST = 8
"""The number of transfers that a read of a Pocket shows; the checker's model keeps as many."""
RECENT = 20
GIVEN_UP, LATER, TWICE = 0.15, 0.2, 0.05
"""The shares of transfers whose outcome stays unknown after a failure, that the worker makes, that are sent again."""
_TRANSIENT = frozenset({429, 500, 502, 503, 504})
_NOT_FOUND, _CONFLICT = 404, 409
NONE, COMPLETED = "NONE", "COMPLETED"


class Caller(msgspec.Struct, frozen=True):
    """The credentials of the partner's user, as `PartnerAuth` takes them."""

    url: str
    username: str
    shared_secret: str
    private_key: str
    kid: str


class Pair(msgspec.Struct, frozen=True):
    """Two Pockets of two customers that pay only each other; `payees[n]` is the counterparty that Pocket n pays."""

    number: int
    pockets: tuple[UUID, UUID]
    payees: tuple[UUID, UUID]
    deposited: int


class History:
    """The requests of all clients, in the order in which they ended."""

    def __init__(self, path: Path) -> None:
        self._file, self._lock = path.open("wb"), Lock()
        self.acknowledged: dict[str, int] = {}
        """The instant of the first answer about each transfer that is COMPLETED."""
        self.open: dict[str, int] = {}
        """The pairs of transfers that are not known to be COMPLETED."""
        self.recent: defaultdict[int, deque[str]] = defaultdict(partial(deque, maxlen=RECENT))
        """The last transfers of each pair, asked for and perhaps not answered yet."""
        self.counts: Counter[str] = Counter()

    def write(self, line: dict[str, Any]) -> None:
        """Add a request."""
        with self._lock:
            self._file.write(msgspec.json.encode(line) + b"\n")
            self.counts["requests"] += 1
            self.counts["unknown"] += line["answer"] is None
            if line["answer"] == COMPLETED:
                self.acknowledged.setdefault(line["id"], line["return"])
                self.open.pop(line["id"], None)
            elif line["do"] == "transfer" and line["id"] not in self.acknowledged:
                self.open[line["id"]] = line["pair"]

    def write_fault(self, kind: str, began: int) -> None:
        """Add a kill or a pause that is over now."""
        with self._lock:
            fault = {"do": "fault", "kind": kind, "call": began, "return": time.monotonic_ns()}
            self._file.write(msgspec.json.encode(fault) + b"\n")

    def close(self) -> None:
        """End the file."""
        self._file.close()


class Client:
    """One client of one pair, with a connection of its own."""

    def __init__(self, number: int, seed: str, processes: Processes, caller: Caller, history: History) -> None:
        self._number, self._random, self._history = number, Random(f"{seed}:{number}"), history
        auth = PartnerAuth(**msgspec.structs.asdict(caller))
        self._http = local_client(caller.url, processes.ca, auth)
        self._http.timeout = httpx.Timeout(ANSWER_SECONDS)
        self._calls = PartnerApi(self._http, attempts=1)

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def run(self, pair: Pair, ended: Callable[[], bool]) -> None:
        """Transfer and read, until it has ended."""
        reads = (self.totals, self.newest, self._look_at_recent)
        with self._http:
            while not ended():
                if self._random.random() < 0.5:  # noqa: PLR2004 - every second
                    self._transfer(pair)
                else:
                    self._random.choice(reads)(pair)

    def totals(self, pair: Pair) -> None:
        """Read what went into and out of both Pockets, in one request: cents as (in, out) of each."""

        def read() -> list[tuple[int, int]]:
            listed = self._calls.list_earnings(pocket_id=pair.pockets).items
            of = {each.pocket_id: (each.contributions.value, each.withdrawals.value) for each in listed}
            return [(of[pocket][0] - pair.deposited, of[pocket][1]) for pocket in pair.pockets]

        self._ask(read, do="totals", pair=pair.number)

    def newest(self, pair: Pair) -> None:
        """Read the newest transfers of one Pocket."""
        side = self._random.randrange(2)
        listed = self._calls.list_pocket_transactions(pair.pockets[side], type=["ON_US"], limit=NEWEST)
        self._ask(
            lambda: [each.on_us_transfer_id for each in next(listed.by_page()).items],
            do="newest",
            pair=pair.number,
            side=side,
        )

    def look(self, transfer_id: str, pair: int) -> str | None:
        """Read a transfer; return its status, NONE if there is no such transfer, None if that is unknown."""
        read = self._calls.get_on_us_transfer
        return self._ask(lambda: read(transfer_id).status, do="look", id=transfer_id, pair=pair)

    def _look_at_recent(self, pair: Pair) -> None:
        if recent := list(self._history.recent[pair.number]):
            self.look(self._random.choice(recent), pair.number)

    def _transfer(self, pair: Pair) -> None:
        """Transfer, and send it again under its key until it is answered, or give up."""
        side, transfer_id = self._random.randrange(2), str(UUID(int=self._random.getrandbits(128), version=4))
        cents = self._random.randrange(10_00, 500_00)
        body = {
            "transfer_id": transfer_id,
            "type": "PEER_TO_PEER",
            "from_account": {"id": pair.pockets[side], "type": "SERVICE_ACCOUNT"},
            "counterparty_id": pair.payees[side],
            "amount_usdc": cents,
            "async_mode": self._random.random() < LATER,
        }
        told = {"do": "transfer", "id": transfer_id, "pair": pair.number, "side": side, "cents": cents}
        self._history.recent[pair.number].append(transfer_id)

        def send() -> str | None:
            return self._ask(
                lambda: self._calls.create_on_us_transfer(idempotency_key=transfer_id, **body).status, **told
            )

        gives_up = self._random.random() < GIVEN_UP
        while send() is None:
            if gives_up:
                return
        if self._random.random() < TWICE:
            send()

    def _ask(self, request: Callable[[], Any], **told: Any) -> Any:
        """Make a request and write it down; return its answer, None for an unknown outcome."""
        called = time.monotonic_ns()
        try:
            answer = request()
        except ApiError as error:
            self._history.counts[str(error.status)] += 1
            if error.status == _NOT_FOUND and told["do"] == "look":
                answer = NONE
            elif error.status in _TRANSIENT or (error.status, error.code) == (_CONFLICT, "idempotency-in-progress"):
                answer = None
            else:
                raise
        except httpx.HTTPError as error:
            self._history.counts[type(error).__name__] += 1
            answer = None
        returned = None if answer is None else time.monotonic_ns()
        self._history.write({"client": self._number, **told, "call": called, "return": returned, "answer": answer})
        if answer is None:
            time.sleep(AGAIN_SECONDS)
        return answer


def settle(client: Client, pairs: Sequence[Pair], history: History, processes: Processes) -> None:
    """Wait for what is PENDING, read every pair, and look once more at the transfers that are not there.

    Those may still take effect, but not before that look: the checker need not try each of them before each read.
    """

    def is_known(transfer_id: str, pair: int) -> bool:
        return client.look(transfer_id, pair) in {NONE, COMPLETED}

    def look_at_open() -> None:
        for transfer_id, pair in list(history.open.items()):
            processes.until(partial(is_known, transfer_id, pair))

    look_at_open()
    for each in pairs:
        client.totals(each)
        client.newest(each)
    look_at_open()
    client.close()
