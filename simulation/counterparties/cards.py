"""A card network and its processor: messages about purchases in two seconds each, and a file for each settlement.

Its book says what was approved, released and paid; the bank must have held and booked just that.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from typing_extensions import override

from billfold.payments.cards.processor import EncryptedDetail, IssuedCard
from billfold.payments.files.exchange import ExchangeFolders
from billfold.platform.calendars import Calendars
from billfold.platform.clock import wall_now
from billfold.platform.dates import et_date, iso_z
from billfold.platform.errors import Unavailable
from billfold.wiring import providers
from simulation.customers import Client
from simulation.oracles import Model, check_holds, check_overdrafts, require
from simulation.processes import CARD_HOST, CARD_KEY

REPLY_SECONDS = 2.0
MESSAGES = "/v1/messages/"
UNDECIDED = frozenset({"TIMED_OUT", "UNAVAILABLE"})
"""Reasons with which the bank says that it has decided nothing."""
SHOP = {"name": "Vantorp Provisions", "category_code": "5411"}
ODDITIES = ("unreadable", "unknown-card", "repeated", None, None)
BANK = "061199992"
_KEY_BITS = 4096


def public_key(draw: Any) -> str:
    """Return an RSA key of a client, in PEM. Nobody decrypts what is encrypted to it."""
    modulus = draw.getrandbits(_KEY_BITS) | 1 | 1 << (_KEY_BITS - 1)
    key = RSAPublicNumbers(65_537, modulus).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@dataclass
class Purchase:
    """A purchase in the book of the network, in cents. `on` is the bank's day on which it was first sent."""

    card: str
    pocket: str
    reference: str
    on: date
    approved: int = 0
    released: int = 0
    cleared: int = 0
    is_final: bool = False
    is_forced: bool = False
    """Others have approved it: the bank may have to advance it."""

    @property
    def open(self) -> int:
        """The cents that the bank still holds for it."""
        return 0 if self.is_final else max(self.approved - self.released - self.cleared, 0)


@dataclass
class Record:
    """A record of a settlement file. Of a purchase up to its amount may be `disputed`; what is more `is_refused`."""

    fields: Mapping[str, Any]
    pocket: str
    purchase: Purchase | None = None
    disputed: int = 0
    is_refused: bool = False


@dataclass
class File:
    """A file that was sent: its records, and the reasons for which lines of it must be held."""

    records: list[Record]
    odd: Counter[str]
    report: dict[str, Any] | None = None


class Processor:
    """Issues cards, for every process of the bank; at times it does not answer."""

    def __init__(self, network: CardNetwork) -> None:
        self._network = network

    async def issue(self, card_id: UUID, *, on: date) -> IssuedCard:
        """Issue a card."""
        await self._network.pause()
        return IssuedCard(last_four=f"{card_id.int % 10_000:04}", expires_on=date(on.year + 4, on.month, 28))

    async def encrypt_detail(self, *_: object) -> EncryptedDetail:
        """Encrypt nothing."""
        return EncryptedDetail(pan="", cvv="", expiration="")

    async def set_status(self, *_: object) -> None:
        """Store the status of a card."""
        await self._network.pause()

    async def close(self) -> None:
        """Nothing is open."""


class CardNetwork(Client):
    """Sends the messages of every merchant, and the processor's files."""

    host = CARD_HOST

    def __init__(self, partner: Client, model: Model, rails: Path, now: Callable[[], datetime]) -> None:
        super().__init__(partner.servers, partner.credentials, partner.faults, partner.random)
        self.acknowledged, self.waiting = partner.acknowledged, partner.waiting
        self.purchases: list[Purchase] = []
        self.limits: dict[str, int] = {}
        self.wrong: list[str] = []
        self._model, self._now = model, now
        self._exchange, self._folder = ExchangeFolders(rails / "card").network_side(), rails / "card"
        self._due: list[Record] = []
        self._files: dict[str, File] = {}
        wiring: Any = providers
        wiring.card_processor_of = lambda *_: Processor(self)

    def _today(self) -> date:
        return et_date(self._now())

    async def pause(self) -> None:
        """Take a moment. Raises Unavailable."""
        await asyncio.sleep(self.random.random() * 0.02)
        if self._strikes("card processor away"):
            raise Unavailable("The card processor does not answer.")

    @override
    def headers(self, method: str, path: str, content: bytes, key: str) -> dict[str, str]:
        at = str(int(wall_now().timestamp()))
        return {"x-timestamp": at, "x-signature": hmac.digest(CARD_KEY, at.encode() + content, "sha256").hex()}

    async def authorize(self, card: str, pocket: str, cents: int) -> Purchase:
        """Authorize a purchase. One without an answer in time is reversed, or approved in place of the bank."""
        purchase = Purchase(card, pocket, self.random.randbytes(6).hex(), self._today())
        self.purchases.append(purchase)
        body = self._message(purchase, "AUTHORIZATION", cents) | {"is_partial_allowed": self.chance(0.5)}
        answer = None
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                answer = await self._once("POST", MESSAGES, json.dumps(body).encode(), "")
        except (TimeoutError, ConnectionError):
            self.faults.happened["authorization without an answer"] += 1
        if answer is not None and answer.status == HTTPStatus.OK and answer.body["reason"] not in UNDECIDED:
            self.acknowledged["POST"] += 1
            self._approve(purchase, approved := answer.body["approved_amount"], cents)
            if approved not in {0, cents} and not body["is_partial_allowed"]:
                self.wrong.append(f"a part is approved, {approved}, which is not allowed: {purchase}")
        elif self.chance(0.5):
            await self._tell(purchase, "REVERSAL", None)
        else:
            await self._tell(purchase, "ADVICE", cents)
            purchase.approved, purchase.is_forced = cents, True
        return purchase

    async def go_on(self, purchase: Purchase) -> None:
        """Raise a purchase, release some of it, and present it: all, a part, or more than was approved."""
        if self.chance(0.2):
            more = self.random.randint(1, 5_000)
            self._approve(purchase, (await self._tell(purchase, "INCREMENT", more))["approved_amount"], more)
        if self.chance(0.2) and purchase.open:
            cents = self.random.choice((None, self.random.randint(1, purchase.open)))
            open_, purchase.released = purchase.open, purchase.released + (cents or purchase.open)
            told = (await self._tell(purchase, "REVERSAL", cents))["approved_amount"]
            if told not in {cents or open_, 0}:  # 0: it has expired
                self.wrong.append(f"of {purchase}, {told} was released instead of {cents or open_}")
        if purchase.open and self.chance(0.8):
            half = purchase.open // 2 or 1
            parts = self.random.choice(([purchase.open], [half, purchase.open], [half]))
            parts[-1] += self.random.choice((0, 0, 0, 0, 500))  # a tip
            for cents in parts:
                await self._present(purchase, cents, is_final=cents is parts[-1] and self.chance(0.8))
        if self.chance(0.1):
            self._add("REFUND", purchase, self.random.randint(1, 20_000), merchant=SHOP)

    async def _present(self, purchase: Purchase, cents: int, *, is_final: bool) -> None:
        await asyncio.sleep(self.random.random() * 3)
        fields = {"network_reference": purchase.reference, "merchant": SHOP, "is_final": is_final}
        self._add("PRESENTMENT", purchase, cents, **fields)

    def _add(self, kind: str, purchase: Purchase, cents: int, **more: Any) -> Record:
        fields = {"record": kind, "record_id": self._id(), "card_id": purchase.card, "amount": cents} | more
        record = Record(fields, purchase.pocket, purchase)
        self._due.append(record)
        return record

    def _approve(self, purchase: Purchase, cents: int, asked: int) -> None:
        purchase.approved += cents
        limit = self.limits.get(purchase.card)
        today = [each for each in self.purchases if each.card == purchase.card and each.on == self._today()]
        spent = sum(each.approved - each.released for each in today if not each.is_forced)
        if cents > asked or (cents and limit is not None and spent > limit):
            self.wrong.append(f"{cents} of {asked} approved, {spent} of the day's {limit}: {purchase}")

    async def _tell(self, purchase: Purchase, kind: str, cents: int | None) -> Any:
        """Send a message until it is answered."""
        message = self._message(purchase, kind, cents)
        answer = await self.ask("POST", MESSAGES, message)
        # What was answered by another than the bank may be booked, or will be: the same message tells later.
        while answer.status == HTTPStatus.OK and answer.body["reason"] == "UNAVAILABLE":
            await asyncio.sleep(1)
            answer = await self.ask("POST", MESSAGES, message)
        if answer.status != HTTPStatus.OK:
            self.wrong.append(f"{kind} of {purchase}: {answer}")
            return {"approved_amount": 0}
        return answer.body

    def _message(self, purchase: Purchase, kind: str, cents: int | None) -> dict[str, Any]:
        return {
            "message_id": self._id(),
            "type": kind,
            "card_id": purchase.card,
            "network_reference": purchase.reference,
            "amount": cents,
            "merchant": SHOP,
            "transmitted_at": iso_z(wall_now()),
        }

    def _id(self) -> str:
        return str(UUID(bytes=self.random.randbytes(16), version=4))

    async def settle(self) -> None:
        """Send the file of what was presented since the last one, with disputes, and often with one odd line."""
        self._dispute()
        if not self._due:
            return
        records, self._due = self._due, []
        file, name = File(records, Counter()), f"settlement-{len(self._files):04}.jsonl"
        lines = self._lines_of(file)
        header = {
            "record": "HEADER",
            "format": "BILLFOLD-CARD-SETTLEMENT",
            "version": 1,
            "reference": f"CYCLE-{len(self._files)}",
            "bank": BANK,
            "settles_on": Calendars().add_fed_days(self._today(), 1).isoformat(),
            "created_at": iso_z(wall_now()),
            "currency": "USD",
        }
        self._files[name] = file
        written = [json.dumps(each).encode() for each in (header, *lines, _trailer(lines))]
        if "unreadable" in file.odd:
            written[-2] = written[-2][: len(written[-2]) // 2]
        await self._exchange.transmit(name, b"\n".join(written) + b"\n")

    def _lines_of(self, file: File) -> list[dict[str, Any]]:
        """Return the lines of a file, and tell the model what they book."""
        lines = []
        for record in file.records:
            kind, cents = record.fields["record"], record.fields["amount"]
            lines.append(dict(record.fields))
            if kind == "PRESENTMENT" and record.purchase is not None:
                record.purchase.cleared += cents
                record.purchase.is_final |= record.fields["is_final"] or not record.purchase.open
            if record.is_refused:
                file.odd[f"{kind.lower()}-not-possible"] += 1
            else:
                self._model.book(record.pocket, -cents if kind in {"PRESENTMENT", "REPRESENTMENT"} else cents)
        oddity, last = self.random.choice(ODDITIES), lines[-1]
        if oddity is not None:
            file.odd[oddity] += 1
            lines.append(last | ({"record_id": self._id(), "card_id": self._id()} if oddity != "repeated" else {}))
        return lines

    async def wait_for_reports(self) -> None:
        """Wait until the bank has answered all files: one that comes days late is refused as a whole."""
        while self._has_unread_files():
            await asyncio.sleep(1)

    def _has_unread_files(self) -> bool:
        self._read_reports()
        return not all(each.report for each in self._files.values())

    def _read_reports(self) -> None:
        for name, file in self._files.items():
            if file.report is None:
                found = [*(self._folder / "done").glob(f"*{name}.report.json")]
                file.report = json.loads(found[0].read_bytes()) if found else None

    def _dispute(self) -> None:
        """Charge purchases of processed files back, represent some, and ask for more than was paid or disputed."""
        for file in () if self._has_unread_files() else self._files.values():
            for record in file.records:
                purchase, cents = record.purchase, record.fields["amount"]
                if record.fields["record"] != "PRESENTMENT" or purchase is None or not self.chance(0.2):
                    continue
                named = {"original_record_id": record.fields["record_id"]}
                if record.disputed and self.chance(0.5):
                    more = self.random.choice((0, 0, 1))
                    made = self._add("REPRESENTMENT", purchase, record.disputed + more, **named)
                    made.is_refused, record.disputed = more > 0, more and record.disputed
                    continue
                asked = self.random.randint(1, cents)
                made = self._add("CHARGEBACK", purchase, asked, **named, reason_code="10-4")
                made.is_refused = record.disputed + asked > cents
                record.disputed += 0 if made.is_refused else asked

    async def check(self, conn: Any, now: datetime) -> None:
        """Check that the bank holds, has booked and has kept apart what is in this book."""
        self._read_reports()
        require(not self.wrong, f"cards: {self.wrong[:3]}")
        for name, file in self._files.items():
            require(file.report is not None, f"{name} is not processed")
            held = Counter(each["reason"].split(":")[0] for each in (file.report or {})["held"])
            require(held == file.odd, f"of {name} {held} are held, not {file.odd}")
        counted_on = {(each.card, each.reference): each.open for each in self.purchases}
        await check_holds(conn, counted_on, now)
        await check_overdrafts(conn, await self._forced(conn))

    async def _forced(self, conn: Any) -> Counter[str]:
        """Return what the network took from each Pocket without the bank's approval, or after its hold had ended."""
        forced = Counter[str]()
        booked = {str(row["record_id"]): row for row in await conn.fetch("SELECT * FROM card_payment")}
        paid = Counter[str]()
        for record in (each for file in self._files.values() for each in file.records):
            kind, cents, purchase = record.fields["record"], record.fields["amount"], record.purchase
            if kind not in {"PRESENTMENT", "REPRESENTMENT"} or purchase is None or record.is_refused:
                continue
            at = booked[record.fields["record_id"]]["created_at"].date()
            paid[purchase.reference] += cents
            is_late = at - purchase.on >= timedelta(days=6)
            if kind == "REPRESENTMENT" or purchase.is_forced or is_late:
                forced[record.pocket] += cents
            elif paid[purchase.reference] > purchase.approved - purchase.released:
                forced[record.pocket] += paid[purchase.reference] - (purchase.approved - purchase.released)
        for purchase in self.purchases:
            forced[purchase.pocket] += purchase.open if purchase.is_forced else 0
        return forced


_TOTALS = {
    "presentments": "PRESENTMENT",
    "refunds": "REFUND",
    "chargebacks": "CHARGEBACK",
    "representments": "REPRESENTMENT",
    "fees": "FEE",
}


def _trailer(lines: list[dict[str, Any]]) -> dict[str, Any]:
    of = {kind: [each["amount"] for each in lines if each["record"] == kind] for kind in _TOTALS.values()}
    signed = {"PRESENTMENT": 1, "REFUND": -1, "CHARGEBACK": -1, "REPRESENTMENT": 1}
    return {
        "record": "TRAILER",
        "records": len(lines),
        **{name: {"count": len(of[kind]), "amount": sum(of[kind])} for name, kind in _TOTALS.items()},
        "interchange": 0,
        "net_settlement": sum(signed[each["record"]] * each["amount"] for each in lines),
    }
