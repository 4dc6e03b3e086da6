"""Ledgers that run next to the bank: the requests that open and fund accounts there, and that transfer.

A transfer is the plainest that a ledger offers: one amount from one account to another, which must have it; under an
idempotency key; and answered only when it is committed.
Sources: Formance Ledger API v2 (`/v2/{ledger}/transactions` with `Idempotency-Key`); Blnk API (`/transactions` with a
unique `reference`, and `skip_queue`, without which the answer comes before the transaction is applied).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx
import msgspec

from benchmarks.load_generator import Call, PlainHeaders
from benchmarks.worker_processes import WorkloadError
from billfold.platform import ids

CURRENCY = "USD"
FUNDED_CENTS = 1_000_000_000
_MAX_CENTS = 2_000_00
_POSTINGS_AT_ONCE = 500
_CONNECTIONS = 8
_SECONDS = 60.0


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a ledger. `key` is sent if it requires one."""

    url: str
    key: str | None = None

    def __post_init__(self) -> None:
        """Raises WorkloadError for an address that cannot be driven."""
        if urlsplit(self.url).scheme != "http":
            raise WorkloadError(f"{self.url}: give the ledger's own address, which begins with http://")

    @property
    def host(self) -> str:
        """Return the host, as it is named in a request."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """Return the port of a plain HTTP server."""
        return urlsplit(self.url).port or 80


class Ledger(Protocol):
    """A ledger with its own HTTP API."""

    name: str
    address: Address

    def open_accounts(self, count: int) -> None:
        """Open and fund so many accounts. Raises WorkloadError."""

    def headers(self) -> PlainHeaders:
        """Return what each request has in its head."""

    def transfers(self, count: int) -> list[Call]:
        """Return so many transfers between accounts drawn at random."""


class Formance:
    """Formance Ledger: a new ledger for each run, accounts that exist once something was posted to them."""

    name = "formance"

    def __init__(self, address: Address) -> None:
        self.address = address
        self._ledger = f"bench-{ids.new().hex[:12]}"
        self._accounts: list[str] = []
        self._draw = Random(5)

    def open_accounts(self, count: int) -> None:
        """Make a ledger and post to so many accounts of it. Raises WorkloadError."""
        self._accounts = [f"accounts:{nth:06}" for nth in range(count)]
        with _client(self.address) as client:
            _post(client, f"/v2/{self._ledger}", {})
            for part in _parts(self._accounts):
                postings = [self._posting("world", account, FUNDED_CENTS) for account in part]
                _post(client, self._path, {"postings": postings, "metadata": {}})

    def headers(self) -> PlainHeaders:
        """Return its idempotency header, and a token if it has one."""
        lines = [f"Authorization: Bearer {self.address.key}"] if self.address.key else []
        return PlainHeaders(self.address.host, lines, key_header="Idempotency-Key")

    def transfers(self, count: int) -> list[Call]:
        """Return so many transactions of one posting."""
        bodies = (
            {"postings": [self._posting(*_pair(self._draw, self._accounts))], "metadata": {}} for _ in range(count)
        )
        return [Call("POST", self._path, body=_json(body)) for body in bodies]

    @property
    def _path(self) -> str:
        return f"/v2/{self._ledger}/transactions"

    @staticmethod
    def _posting(source: str, destination: str, cents: int) -> dict[str, Any]:
        return {"source": source, "destination": destination, "amount": cents, "asset": f"{CURRENCY}/2"}


class Blnk:
    """Blnk: balances in a ledger, transactions that are applied before they are answered."""

    name = "blnk"

    def __init__(self, address: Address) -> None:
        self.address = address
        self._balances: list[str] = []
        self._draw = Random(5)

    def open_accounts(self, count: int) -> None:
        """Make a ledger with so many balances and fund them. Raises WorkloadError."""
        with _client(self.address) as client, ThreadPoolExecutor(_CONNECTIONS) as threads:
            ledger = _post(client, "/ledgers", {"name": f"bench-{ids.new().hex[:12]}"})["ledger_id"]
            new = {"ledger_id": ledger, "currency": CURRENCY}
            made = threads.map(lambda _: _post(client, "/balances", new)["balance_id"], range(count))
            self._balances = list(made)
            for part in _parts(self._balances):
                funding = [
                    self._transaction("@bench-funding", each, FUNDED_CENTS) | {"allow_overdraft": True} for each in part
                ]
                _post(client, "/transactions/bulk", {"transactions": funding, "skip_queue": True})

    def headers(self) -> PlainHeaders:
        """Return its key, if it has one; the idempotency key is the reference in the body."""
        return PlainHeaders(self.address.host, [f"X-Blnk-Key: {self.address.key}"] if self.address.key else [])

    def transfers(self, count: int) -> list[Call]:
        """Return so many transactions, each with its own reference."""
        bodies = (self._transaction(*_pair(self._draw, self._balances)) for _ in range(count))
        return [Call("POST", "/transactions", body=_json(body)) for body in bodies]

    @staticmethod
    def _transaction(source: str, destination: str, cents: int) -> dict[str, Any]:
        return {
            "source": source,
            "destination": destination,
            "amount": cents / 100,
            "precision": 100,
            "currency": CURRENCY,
            "reference": str(ids.new()),
            "description": "Invoice",
            "skip_queue": True,
        }


def _pair(draw: Random, accounts: Sequence[str]) -> tuple[str, str, int]:
    """Return two different accounts and an amount in cents."""
    payer, payee = draw.sample(accounts, 2)
    return payer, payee, draw.randrange(100, _MAX_CENTS)


def _parts(accounts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (accounts[at : at + _POSTINGS_AT_ONCE] for at in range(0, len(accounts), _POSTINGS_AT_ONCE))


def _client(address: Address) -> httpx.Client:
    headers = {"Authorization": f"Bearer {address.key}", "X-Blnk-Key": address.key} if address.key else {}
    return httpx.Client(base_url=address.url, headers=headers, timeout=_SECONDS)


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    """Return the answer to a request of the preparation. Raises WorkloadError when it is refused."""
    try:
        answer = client.post(path, json=body)
    except httpx.HTTPError as error:
        raise WorkloadError(f"{client.base_url} does not answer POST {path}: {error}") from error
    if not answer.is_success:
        raise WorkloadError(f"{client.base_url} refused POST {path}: {answer.status_code} {answer.text[:500]}")
    return answer.json() if answer.content else None


def _json(body: dict[str, Any]) -> str:
    return msgspec.json.encode(body).decode()
