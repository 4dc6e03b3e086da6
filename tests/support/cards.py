"""A customer's cards as used by the partner, the messages about their payments, and settlement files."""

import base64
import json
import random
import secrets
from datetime import UTC, date, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import psutil
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from tests.support.whole_bank import PARTNER, expect_clean

from billfold.payments.cards.authorizations.commands import Merchant
from billfold.payments.cards.cash_back.store import list_given
from billfold.payments.cards.cash_back.worker import set_rule
from billfold.payments.cards.commands import CreateVirtualCard
from billfold.payments.cards.settlement.file_format import write_file
from billfold.payments.cards.settlement.inbound import CardSettlementFiles
from billfold.payments.cards.settlement.records import (
    FORMAT,
    VERSION,
    Chargeback,
    Fee,
    Header,
    Presentment,
    Refund,
    Representment,
)
from billfold.payments.files.exchange import RailExchanges
from billfold.platform import ids
from billfold.sandbox.card_processor.vault import CardVault
from billfold.sandbox.control.clock_stepper import ClockStepper
from billfold.wiring.providers import rail_files_folder

SHIPPING = {
    "street_address": "9 Larkmoor Road",
    "city": "Vantorp",
    "state": "NV",
    "postal_code": "89507",
    "country": "US",
}
PIN = "4711"


@cache
def client_key():
    """The private key of a client, made once: 4096 bits take seconds."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=4096)


def unread_key(seed=None):
    """A public key without a known private key; the same for the same seed."""
    bits = secrets.randbits(4096) if seed is None else random.Random(seed).getrandbits(4096)
    return rsa.RSAPublicNumbers(65_537, bits | 1 << 4095 | 1).public_key()


def pem(public_key, form=PublicFormat.PKCS1):
    return public_key.public_bytes(Encoding.PEM, form).decode()


def decrypted(answer, how=None):
    """Return number, CVV and expiration, which were encrypted to the client's key."""
    values = (answer[f"encrypted_{name}"] for name in ("pan", "cvv", "expiration"))
    return [client_key().decrypt(base64.b64decode(value), how or padding.PKCS1v15()).decode() for value in values]


def encrypted_pin(key, pin=PIN):
    """Return the body that sets a PIN, encrypted to the processor's key."""
    loaded: Any = load_pem_public_key(key.encode())
    return {"encrypted_pin": base64.b64encode(loaded.encrypt(pin.encode(), padding.PKCS1v15())).decode()}


def processors():
    """Return the processes of card processors that this one has started."""
    return [each for each in psutil.Process().children() if "billfold.sandbox.card_processor.vault" in each.cmdline()]


class Holder:
    """A customer of the partner with a Pocket, and its cards."""

    def __init__(self, desk, pocket):
        self.desk, self.pocket = desk, pocket
        self.account = f"/api/v1/service-accounts/{pocket.id}"

    def status_path(self, card_id):
        return f"{self.account}/cards/{card_id}/status/"

    async def set_status(self, card_id, status, **fields):
        return await self.desk.patch(self.status_path(card_id), {"card_status": status, **fields})

    def new_virtual_card(self, key=None):
        """Return the path and the body that make one."""
        return f"{self.account}/virtual-cards/", {"public_key": pem(key or unread_key())}

    async def virtual_card(self, key=None):
        return await self.desk.post(*self.new_virtual_card(key))

    def order(self):
        """Return the path and the body that order a card."""
        return f"{self.account}/card-orders/", {"name_on_card": "Ada Marsh", "shipping_address": SHIPPING}

    async def ordered(self):
        return await self.desk.post(*self.order())

    async def produced(self, order):
        """Return the id of the card that was made of an order."""
        await self.desk.post("/api/v1/sandbox/generate-card/", {"card_order_id": order["card_order_id"]}, status=202)
        made = await self.desk.get(f"{self.account}/card-orders/{order['card_order_id']}/")
        assert made["status"] == "CARD_CREATED"
        return made["card_id"]

    def numbers(self):
        """Return how many card numbers the processor has issued."""
        vault = CardVault(self.desk.bank.settings.state_dir / "card_processor")
        return vault.database.execute("SELECT count(*) FROM card").fetchone()

    async def encrypted(self, pin):
        return encrypted_pin((await self.desk.get("/api/v1/public-keys/"))["set_pin"], pin)

    async def events(self):
        """Return the statuses that events of cards named, in their order."""
        rows = await self.desk.bank.pool.fetch(
            "SELECT kind FROM event WHERE customer_id = $1 AND kind LIKE 'card.%' ORDER BY event_no",
            self.pocket.customer,
        )
        return [row["kind"].removeprefix("card.status.") for row in rows]


FUNDED = 5_000_00


class Cardholder(Holder):
    """A customer with a funded Pocket and a virtual card."""

    async def funded(self, cents=FUNDED):
        await self.desk.wire(self.pocket, cents)
        self.card = (await self.virtual_card())["card_id"]
        return self

    async def simulate(self, operation, **fields):
        body = {"card_id": self.card, **fields}
        return await self.desk.post(f"/api/v1/sandbox/card-{operation}/", body, status=202)

    async def authorize(self, cents, **fields):
        return await self.simulate("authorization", amount_usdc=cents, **fields)

    async def held(self, cents, **fields):
        """Return the reference of a purchase that is approved in full."""
        decided = await self.authorize(cents, **fields)
        assert (decided["decision"], decided["approved_amount"]) == ("APPROVED", cents)
        return decided["network_reference"]

    async def declined(self, reason, cents=10_00, **fields):
        decided = await self.authorize(cents, **fields)
        assert (decided["decision"], decided["approved_amount"], decided["reason"]) == ("DECLINED", 0, reason)

    async def listed(self, **filters):
        """Return (direction, status, cents) of the card's transactions, oldest first."""
        path = f"/api/v2/pockets/{self.pocket.id}/transactions/"
        items = await self.desk.pages(path, {"card[]": self.card, "type[]": "CARD", "order": "asc", **filters}, limit=3)
        return [(each["direction"], each["status"], each["amount"]["value"]) for each in items]

    async def portfolio(self):
        return (await self.desk.get(self.pocket.path))["portfolio"]

    async def money(self):
        """Return the amounts in the events about the card, in order."""
        rows = await self.desk.bank.pool.fetch(
            """SELECT kind, (payload->>'amount')::bigint AS cents FROM event
                WHERE customer_id = $1 AND kind LIKE 'card.transaction.%' ORDER BY event_no""",
            UUID(self.pocket.customer),
        )
        return [(row["kind"].rpartition(".")[2], row["cents"]) for row in rows]

    async def reserved(self):
        return await self.desk.bank.pool.fetchval(
            "SELECT reserved FROM account WHERE customer_id = $1 AND pocket_id = $2 AND kind = 'cash'", *self.pocket.key
        )


BANK = "061199992"
SHOP = Merchant(name="Corner Shop", category_code="5411", city="Reno", state="NV", country="US")
TUESDAY = date(2025, 6, 3)


class Processor:
    """The card processor of a bank, as far as it sends settlement files."""

    def __init__(self, bank):
        self.bank, self.clock = bank, ClockStepper(bank)
        self.folder = rail_files_folder(bank.settings) / "card"
        self.files = CardSettlementFiles()
        self.count = 0

    async def card(self, commands, place=None):
        """Return the id of a new card of this holder, or of a place that these commands are about."""
        card_id, place = ids.new(), place or commands.place
        await commands.submit(
            CreateVirtualCard,
            place.customer,
            card_id=card_id,
            pocket_id=place.id,
            name="Ada Marsh",
            last_four="4242",
            expires_on=date(2029, 6, 30),
        )
        return card_id

    def file(self, *records, **header):
        self.count += 1
        fields: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "reference": f"CYCLE-{self.count}",
            "bank": BANK,
            "settles_on": TUESDAY,
            "created_at": datetime(2025, 6, 2, 22, tzinfo=UTC),
            "currency": "USD",
        }
        return write_file(Header(**fields | header), records)

    async def put(self, content, name=None):
        """Let a file arrive; return its report."""
        name = name or f"cycle-{self.count}.jsonl"
        await self.bank.ports[RailExchanges].card.network_side().transmit(name, content)
        await self.files.process_all(self.bank)
        (report,) = self.folder.glob(f"*/{name}.report.json")
        found = json.loads(report.read_bytes())
        report.unlink()
        return found

    async def send(self, *records, **header):
        report = await self.put(self.file(*records, **header))
        assert report["state"] == "PROCESSED", report
        return report

    async def clean(self):
        await expect_clean(self.bank)

    async def balances(self, *kinds):
        """Return the bank's balances of these kinds of accounts, credits less debits."""
        rows = await self.bank.pool.fetch(
            "SELECT kind, sum(credits - debits)::bigint AS cents FROM account WHERE asset = 'USD' GROUP BY kind"
        )
        held = {row["kind"]: row["cents"] for row in rows}
        return tuple(held.get(kind, 0) for kind in kinds)


class Program(Processor):
    """A partner with a rule of cash back, and the cards of its customers."""

    async def rule(self, **fields):
        own = await self.bank.pool.fetchval("SELECT bank_customer_id FROM bank")
        partner: Any = SimpleNamespace(partner_id=PARTNER, own_customer_id=own)
        return await set_rule(self.bank, partner, **fields)

    async def on(self, day):
        await self.clock.set_to(datetime.combine(day, datetime.min.time(), UTC).replace(hour=15))

    async def given(self, period):
        """Return the cash back of a month by card, in cents."""
        return {each.card_id: each.amount for each in await list_given(self.bank.pool, period)}

    async def credits(self, customer_id):
        return [
            (row["amount"], row["period"])
            for row in await self.bank.pool.fetch(
                "SELECT amount, details->>'period' AS period FROM transaction"
                " WHERE customer_id = $1 AND type = 'CREDIT' ORDER BY booked_at",
                customer_id,
            )
        ]


def presentment(card_id, amount, **fields):
    own: dict[str, Any] = {"record_id": ids.new(), "merchant": SHOP, "interchange": amount // 100}
    return Presentment(card_id=card_id, amount=amount, **own | fields)


def refund(card_id, amount, **fields):
    own: dict[str, Any] = {"record_id": ids.new(), "merchant": SHOP, "interchange": -(amount // 100)}
    return Refund(card_id=card_id, amount=amount, **own | fields)


def chargeback(of, amount=None, **fields):
    own: dict[str, Any] = {"record_id": ids.new(), "reason_code": "10-4", "card_id": of.card_id}
    return Chargeback(original_record_id=of.record_id, amount=amount or of.amount, **own | fields)


def representment(of, amount=None, **fields):
    own: dict[str, Any] = {"record_id": ids.new(), "card_id": of.card_id}
    return Representment(original_record_id=of.record_id, amount=amount or of.amount, **own | fields)


def fee(amount, kind="NETWORK"):
    return Fee(record_id=ids.new(), kind=kind, amount=amount, description="Assessments")
