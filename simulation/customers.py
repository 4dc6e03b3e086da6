"""A partner and its customers: seeded requests, each repeated under its key until it is answered."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from random import Random
from typing import Any, ClassVar, NamedTuple, Protocol
from uuid import UUID

from simulation.faults import Faults
from simulation.oracles import Model
from simulation.processes import PARTNER_HOST, Credentials

PATIENCE_SECONDS = 8.0
"""How long a client waits for an answer before it asks again."""
PAUSE_SECONDS, PAUSE_MAX_SECONDS = 0.3, 4.0
"""The longest pause before the first repetition, doubled each time, and before any."""
REPEATED = frozenset({429, 500, 502, 503, 504})
"""Answers after which the same request is sent again; also a 409 that says that it still runs, and a 401 that says
that its proof was seen before or is old."""
WEEKS = (4, 13, 26, 52)
BETA = {"type": "business", "business_name": "Beta LLC"}
ADDRESS = {"street_address": "1 Main St", "city": "Reno", "postal_code": "89501", "state": "NV", "country": "US"}
WIRE_PAYEE = {
    "type": "wire",
    "routing_number": "021000021",
    "identifier": "000123456789",
    "address": ADDRESS,
    "verification": {"type": "incoming_wire"},
}


class Place(NamedTuple):
    """A Pocket of a customer, with its first portal and that one's account number."""

    customer: str
    id: str
    portal: str
    number: str


class Answer(NamedTuple):
    """The status of a response, and its JSON."""

    status: int
    body: Any


class Answering(Protocol):
    """A server, in this process or not."""

    async def answer(self, scope: dict[str, Any], body: bytes) -> tuple[int, bytes]:
        """Answer one request. Raises ConnectionError."""


class Client:
    """Sends requests to any server of the bank; on the way there and back they are lost, late or doubled."""

    host = PARTNER_HOST
    heard: ClassVar[Callable[..., None]] = staticmethod(lambda *_: None)
    """Is told the client, the request and the final answer of each."""

    def __init__(self, servers: Sequence[Answering], credentials: Credentials, faults: Faults, random: Random) -> None:
        self.servers, self.credentials, self.faults, self.random = servers, credentials, faults, random
        self.acknowledged: Counter[str] = Counter()
        self.waiting: dict[str, str] = {}

    async def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Return the final answer to a request."""
        key = str(UUID(bytes=self.random.randbytes(16), version=4))
        content = b"" if body is None else json.dumps(body).encode()
        self.waiting[key], pause = f"{method} {path}", PAUSE_SECONDS
        while True:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    answer = await self._once(method, path, content, key)
            except (TimeoutError, ConnectionError):
                answer = None
            if answer is not None and not _is_repeated(answer):
                break
            await asyncio.sleep(self.random.random() * pause)
            pause = min(2 * pause, PAUSE_MAX_SECONDS)
        del self.waiting[key]
        self.acknowledged[method] += 1
        self.heard(self, (method, path, content, key), answer)
        return answer

    async def again(self, method: str, path: str, content: bytes, key: str) -> Answer:
        """Send a request again that was answered; return its final answer."""
        while _is_repeated(answer := await self._once(method, path, content, key)):
            await asyncio.sleep(self.random.random() * PAUSE_SECONDS)
        return answer

    async def _once(self, method: str, path: str, content: bytes, key: str) -> Answer:
        scope = self._scope(method, path, content, key)
        await asyncio.sleep(self.random.random() * 0.02)
        if self._strikes("request lost"):
            raise ConnectionResetError
        if self._strikes("request doubled"):
            twin = self.random.choice(self.servers)
            other = asyncio.get_running_loop().create_task(_forget(twin, dict(scope), content))
            del other
        status, raw = await self.random.choice(self.servers).answer(scope, content)
        if self._strikes("response lost"):
            raise ConnectionResetError
        if self._strikes("response late"):
            await asyncio.sleep(self.random.random() * 60)
        return Answer(status, json.loads(raw) if raw else None)

    def chance(self, of: float) -> bool:
        """Tell whether something that happens this often happens now."""
        return self.random.random() < of

    def _strikes(self, fault: str) -> bool:
        struck = self.chance(self.faults.rate)
        self.faults.happened[fault] += struck
        return struck

    def headers(self, method: str, path: str, content: bytes, key: str) -> dict[str, str]:
        """Return the headers that prove who sends a request."""
        mine = self.credentials
        signature = base64.b64encode(hmac.digest(mine.secret.encode(), f"{key}{path}".encode() + content, "sha256"))
        return {
            "authorization": f"Bearer {mine.token}",
            "x-service-idempotency": key,
            "x-service-signature": signature.decode(),
        }

    def _scope(self, method: str, path: str, content: bytes, key: str) -> dict[str, Any]:
        headers = {
            "host": f"{self.credentials.slug}.localhost" if self.host == PARTNER_HOST else self.host,
            "content-type": "application/json",
            "content-length": str(len(content)),
            **self.headers(method, path, content, key),
        }
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "scheme": "https",
            "server": (self.host, 443),
            "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "state": {},
        }


async def _forget(server: Answering, scope: dict[str, Any], content: bytes) -> None:
    try:
        await server.answer(scope, content)
    except ConnectionError:
        return


def _is_repeated(answer: Answer) -> bool:
    code = answer.body.get("code") if isinstance(answer.body, dict) else None
    if code == "usage-limit-reached":  # of a day of the bank
        return False
    return answer.status in REPEATED or code in {"idempotency-in-progress", "invalid-dpop-proof"}


class Life:
    """The steps of customers, one after the other. `model` is told what was acknowledged."""

    def __init__(self, client: Client, model: Model, random: Random, *, lines: int, places_max: int) -> None:
        self.client, self.model, self.random = client, model, random
        self.lines, self.places_max = lines, places_max
        self.places: list[Place] = []
        self.payees: dict[str, str] = {}
        self.refused: Counter[str] = Counter()
        self.busy: Counter[str] = Counter()
        self.advanced = 0

    async def step(self) -> None:
        """Do one thing, of a kind at which few others are: a rail that stands still holds up only its share."""
        total = sum(STEPS.values())
        free = {kind: each for kind, each in STEPS.items() if self.busy[kind] <= CROWD * each * self.lines / total}
        if not self.places or (self.chance(0.1) and len(self.places) + self.busy["join"] < self.places_max):
            free = {"join": 1} if self.busy["join"] < JOINING_MAX else {}
        if not free:
            return await asyncio.sleep(PAUSE_SECONDS)
        (kind,) = self.random.choices(*zip(*free.items(), strict=True))
        self.busy[kind] += 1
        try:
            await (self.join() if kind == "join" else getattr(self, f"_{kind}")(self.random.choice(self.places)))
        finally:
            self.busy[kind] -= 1

    async def _ask(self, method: str, path: str, body: object = None, *, by: Client | None = None) -> Any:
        """Return the body of a success, None for a refusal."""
        answer = await (by or self.client).ask(method, path, body)
        if answer.status // 100 == HTTPStatus.OK // 100:
            return answer.body if answer.body is not None else {}
        self.refused[f"{answer.status} {answer.body.get('code') or answer.body.get('detail')}"] += 1
        await asyncio.sleep(self.random.random() * PAUSE_MAX_SECONDS)
        return None

    async def join(self) -> None:
        if self.places and self.chance(0.5):
            customer = self.random.choice(self.places).customer
        else:
            customer = await self._new_customer()
        body = {"pocket_name": "Reserve", "deposit_strategy_id": f"UST-{self.random.choice(WEEKS)}W"}
        pocket = await self._ask("POST", f"/api/v2/customers/{customer}/pockets/", body)
        portals = await self._ask("GET", f"/api/v2/pockets/{pocket['id']}/portals/")
        portal = portals["items"][0]
        self.places.append(Place(customer, pocket["id"], portal["id"], portal["network_address"]))
        await self._wire_in(self.places[-1])

    async def _new_customer(self) -> str:
        made = await self._ask("POST", "/api/v1/sandbox/customers/", {"name": "Beta LLC", "type": "BUSINESS"})
        return str(made["id"])

    async def _wire_in(self, place: Place) -> None:
        cents = self._cents()
        body = {"portal_id": place.portal, "amount_usdc": cents, "sender_name": "Contoso"}
        if await self._ask("POST", "/api/v1/sandbox/wire/", body) is not None:
            self.model.book(place.id, cents)

    async def _ach_in(self, place: Place) -> None:
        """Pay in, from the sandbox itself or in a file of another bank."""
        cents, count = self._cents(), self.random.randint(1, 3)
        path, body = "fund", {"account_id": place.id, "amount_usdc": cents, "count": count}
        if self.chance(0.5):
            path, count = "ach/entries", 1
            body = {"portal_id": place.portal, "direction": "CREDIT", "amount_usdc": cents}
        if await self._ask("POST", f"/api/v1/sandbox/{path}/", body) is not None:
            for _ in range(count):
                self.model.book(place.id, cents)

    async def _pay(self, place: Place) -> None:
        there = self.random.choice(self.places)
        cents = self._cents() // 10 + 1
        body: dict[str, Any] = {"from_account": {"id": place.id}, "amount_usdc": cents}
        if there.customer == place.customer:
            body |= {"type": "INTERNAL_REALLOCATION", "to_account": {"id": there.id}}
        else:
            linked = await self._linked(place, f"peer {there.id}", {"type": "on_us", "account_number": there.number})
            if linked is None:
                return
            body |= {"type": "PEER_TO_PEER", "counterparty_id": linked}
        body["async_mode"] = self.chance(0.2)
        made = await self._ask("POST", "/api/v1/transfers/on-us/", body)
        if made is not None:
            self.model.transfers[made["id"]] = (place.id, there.id, cents)

    async def _wire_out(self, place: Place) -> None:
        linked = await self._linked(place, "wire", WIRE_PAYEE)
        if linked is None:
            return
        cents = self._paid_cents()
        path = f"/api/v1/service-accounts/{place.id}/wires/"
        made = await self._ask("POST", path, {"counterparty_id": linked, "amount_usdc": cents, "description": "Rent"})
        if made is not None and made["status"] != "REJECTED":
            self.model.wires[made["id"]] = (place.id, cents)

    async def _ach_out(self, place: Place) -> None:
        linked = await self._linked(
            place,
            "ach",
            {
                "type": "ach",
                "routing_number": "021000021",
                "account_number": "000123456789",
                "account_type": "CHECKING",
                "verification": {"type": "incoming_wire"},
            },
        )
        if linked is None:
            return
        cents = self._paid_cents()
        body = {"counterparty_id": linked, "amount_usdc": cents, "direction": "CREDIT", "sec_code": "PPD"}
        body["company_entry_description"] = "PAYROLL"
        made = await self._ask("POST", f"/api/v1/service-accounts/{place.id}/ach-originating/", body)
        if made is not None and made["status"] != "REJECTED":
            self.model.entries[made["id"]] = (place.id, cents)

    async def _give_back(self, place: Place) -> None:
        """Have the other bank return a payment, at times twice, in parts or too late."""
        del place
        paid = [*self.model.wires.items(), *self.model.entries.items()]
        if not paid:
            return
        payment, (_, cents) = self.random.choice(paid)
        if payment in self.model.entries:
            await self._ask("POST", "/api/v1/sandbox/ach/submit/", {})
            path, body = f"ach/{payment}/", dict[str, Any](move="return", code="R03")
        else:
            for step in ("submit", "acknowledge"):
                await self._ask("POST", f"/api/v1/sandbox/wires/{payment}/{step}/", {})
            path, body = f"wires/{payment}/return/", {"amount_usdc": self.random.choice((cents, cents // 2 or 1))}
        for _ in range(2):
            if await self._ask("POST", f"/api/v1/sandbox/{path}", body) is not None:
                self.model.returned[payment].append(body.get("amount_usdc", cents))

    async def _linked(self, place: Place, name: str, details: dict[str, Any]) -> str | None:
        known = self.payees.get(f"{place.customer} {name}")
        if known is not None:
            return known
        path = f"/api/v2/customers/{place.customer}/counterparties/"
        made = await self._ask("POST", path, {"counterparty_name": BETA, **details})
        if made is None:
            return None
        if made["type"] != "on_us":
            verified = {"counterparty_id": made["id"], "status": "APPROVED"}
            await self._ask("POST", "/api/v1/sandbox/counterparty-verification/", verified)
        self.payees[f"{place.customer} {name}"] = made["id"]
        return str(made["id"])

    async def _read(self, place: Place) -> None:
        await self._ask("GET", f"/api/v2/pockets/{place.id}/")

    async def advance(self) -> None:
        """Let the clock jump. Rails settle before it does."""
        body = self.random.choice(({"seconds": self.random.randint(60, 20_000)}, {"business_days": 1}))
        await self._ask("POST", "/api/v1/sandbox/clock/advance/", body)

    def chance(self, of: float) -> bool:
        """Tell whether something that happens this often happens now."""
        return self.random.random() < of

    def _paid_cents(self) -> int:
        """Return an amount for another bank: it rejects a wire that ends with one cent, an entry with three."""
        return self._cents() // 1000 * 100 + self.random.choice((1, 3, self.random.randrange(2, 100)))

    def _cents(self) -> int:
        return self.random.choice((self.random.randint(1, 20_000), self.random.randint(10_000, 5_000_000)))


STEPS = {"wire_in": 8, "ach_in": 6, "pay": 24, "wire_out": 8, "ach_out": 8, "give_back": 8, "read": 6}
STEPS |= {"member_pay": 8, "member_read": 4, "member_report": 2, "card_pay": 24, "usdc_in": 10}
"""Each step with its weight."""
CROWD, JOINING_MAX = 1.5, 4
"""How many times its share of the clients may be at one kind of step, and how many may join."""
