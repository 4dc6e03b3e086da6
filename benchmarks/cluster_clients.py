"""The customers of the simulation, as clients of real processes: their steps, and batches; what they were answered."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections import Counter
from http import HTTPStatus
from typing import Any

from typing_extensions import override

from benchmarks.failover import Streams, exchange
from billfold.platform.clock import wall_now
from billfold.sandbox.chain.faucet import CHAIN_NAME
from simulation import customers
from simulation.counterparties.cards import CardNetwork
from simulation.customers import Answer, Client, Place
from simulation.members import MembersLife
from simulation.oracles import UNITS_PER_CENT

STEPS = {"wire_in": 6, "ach_in": 8, "pay": 30, "wire_out": 10, "ach_out": 10, "give_back": 2, "member_pay": 8}
STEPS |= {"card_pay": 16, "usdc_in": 2, "batch": 12, "limits": 3}
"""Each step with its weight."""
ROWS, WIRES, BATCH_SECONDS = 200, 0.03, 1.0
"""The rows of a batch, the share of wires among them, and how often its client looks for the result."""
CARD_KEY = b"a key with which processors sign"
Request = tuple[str, str, bytes, str]


class HttpServer:
    """A process that serves the APIs behind a proxy which ends TLS. Connections are kept."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[Streams] = []

    async def answer(self, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        """Answer one request. Raises ConnectionError."""
        lines = [f"{scope['method']} {scope['path']} HTTP/1.1".encode(), b"x-forwarded-proto: https"]
        lines += [b"%b: %b" % header for header in (*scope["headers"], (b"x-forwarded-for", b"127.0.0.1"))]
        streams = self._free.pop() if self._free else await asyncio.open_connection("127.0.0.1", self._port)
        try:
            answer = await exchange(*streams, b"\r\n".join([*lines, b"", body]))
        except BaseException as error:
            streams[1].close()
            if isinstance(error, (OSError, EOFError)):
                raise ConnectionResetError from error
            raise
        self._free.append(streams)
        return answer


class Heard:
    """Requests with their final answers, by key."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[Client, Request, Answer]] = {}
        self.kinds: Counter[str] = Counter()
        self.acknowledged = 0

    def __call__(self, client: Client, request: Request, answer: Answer) -> None:
        """Take an answer."""
        method, path, content, key = request
        if method != "GET":
            words = [each for each in path.split("/")[2:] if each and len(each) != len(key)]
            kind = json.loads(content).get("type", "") if client.host == Network.host and content else ""
            self.kinds[f"{method} {'/'.join(words)} {kind}".strip()] += 1
            self.answers[key] = client, request, answer
            is_open = isinstance(answer.body, dict) and answer.body.get("reason") == "UNAVAILABLE"  # is asked again
            self.acknowledged += answer.status < HTTPStatus.BAD_REQUEST and not is_open


class Network(CardNetwork):
    """The card network, with a key of its own."""

    @override
    def headers(self, method: str, path: str, content: bytes, key: str) -> dict[str, str]:
        at = str(int(wall_now().timestamp()))
        signed = hmac.digest(CARD_KEY, at.encode() + content, "sha256").hex()
        return {"x-timestamp": at, "x-signature": signed}


class ClusterLife(MembersLife):
    """The steps of the simulation that a real bank can take, and batches of transfers."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        customers.STEPS.clear()
        customers.STEPS.update(STEPS)
        self.batches: dict[str, list[tuple[str, str, int]]] = {}
        self.rows: Counter[str] = Counter()
        self.portals: dict[str, str] = {}

    async def link(self) -> None:
        """Link whom Pockets pay in batches."""
        pairs = zip(self.places, [*self.places[1:], self.places[0]], strict=True)
        await asyncio.gather(*(self._link(*pair) for pair in pairs))

    async def _link(self, place: Place, there: Place) -> None:
        await self._linked(place, "wire", customers.WIRE_PAYEE)
        if place.customer != there.customer:
            await self._linked(place, f"peer {there.id}", {"type": "on_us", "account_number": there.number})

    async def _batch(self, _: Place) -> None:
        """Have many Pockets pay their peers in one request, and wait for its result."""
        made = [await self._row() for _ in range(ROWS)]
        rows, sent = [row for row, _ in made if row], [payment for row, payment in made if row]
        if not rows:
            return
        body = {"kind": "TRANSFERS", "mode": "INDEPENDENT", "rows": rows}
        if (batch := await self._ask("POST", "/api/v1/batches/", body)) is None:
            return
        self.batches[batch["id"]] = sent
        while (shown := await self._ask("GET", f"/api/v1/batches/{batch['id']}/")) and shown["rows"]["waiting"]:
            await asyncio.sleep(BATCH_SECONDS)
        if shown is not None:
            self.rows += Counter(completed=shown["rows"]["completed"], failed=shown["rows"]["failed"])

    async def _row(self) -> tuple[dict[str, Any] | None, tuple[str, str, int]]:
        """Return a row that pays a peer or, seldom, a wire; None if its payee is refused."""
        nth, cents = self.random.randrange(len(self.places)), self.random.randint(1, 20_000)
        place = self.places[nth]
        there = self.places[(nth + 1) % len(self.places)]
        row: dict[str, Any] = {"from_pocket_id": place.id, "amount_usdc": cents, "description": "Invoice"}
        payment = place.id, there.id, cents
        if self.chance(WIRES):
            linked = await self._linked(place, "wire", customers.WIRE_PAYEE)
            return _paying(row, "WIRE", linked), (place.id, "", cents)
        if place.id == there.id:
            return None, payment
        if there.customer == place.customer:
            return row | {"type": "INTERNAL_REALLOCATION", "to_pocket_id": there.id}, payment
        linked = await self._linked(place, f"peer {there.id}", {"type": "on_us", "account_number": there.number})
        return _paying(row, "PEER_TO_PEER", linked), payment

    async def _limits(self, place: Place) -> None:
        """Change the limit of a card, which its network does not know yet."""
        if (card := self.cards.get(place.id)) is not None and card not in self.network.limits:
            body: dict[str, Any] = {"daily": self.random.choice((None, 10_000_000)), "categories": {}}
            await self._ask("PUT", f"/api/v1/service-accounts/{place.id}/cards/{card}/limits/", body)

    @override
    async def _usdc_in(self, place: Place) -> None:
        """Send USDC to the address of a Pocket, and let the chain go on."""
        if place.id not in self.portals:
            portal = {"name": "On chain", "type": "CRYPTO_DEPOSIT_ADDRESS_PORTAL", "chain": CHAIN_NAME}
            if (made := await self._ask("POST", f"/api/v2/pockets/{place.id}/portals/", portal)) is None:
                return
            self.portals.setdefault(place.id, made["id"])
            self.wallets.setdefault(place.id, made["wallet_address"])
        units = self._cents() * UNITS_PER_CENT
        body: dict[str, Any] = {"portal_id": self.portals[place.id], "units": units}
        await self._ask("POST", "/api/v1/sandbox/crypto/deposit/", body)
        await self._ask("POST", "/api/v1/sandbox/crypto/mine/", {"blocks": 3})


class Hook:
    """A receiver of webhooks: an event may come twice, and never changed."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}
        self.changed: list[str] = []
        self.received = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the events of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                self._receive(json.loads(await reader.readexactly(int(length[15:]))))
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (OSError, EOFError):
            writer.close()

    def _receive(self, event: Any) -> None:
        self.received += 1
        if self.seen.setdefault(event["event_id"], event) != event:
            self.changed.append(event["event_id"])


def _paying(row: dict[str, Any], kind: str, counterparty: str | None) -> dict[str, Any] | None:
    return row | {"type": kind, "counterparty_id": counterparty} if counterparty else None


def same(first: Answer, again: Answer) -> bool:
    """Tell whether a request that was sent again got the answer that it had."""
    ids = [each.body.get("id") if isinstance(each.body, dict) else None for each in (first, again)]
    return first.status == again.status and ids[0] == ids[1]


def key_text() -> str:
    """Return the key of the network, as a setting."""
    return base64.b64encode(CARD_KEY).decode()
