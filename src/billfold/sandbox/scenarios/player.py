"""Plays scenarios through the Partner API: what a partner sends, and what the sandbox lets happen."""

import hashlib
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from billfold.platform.dates import ET, et_date, et_instant, iso_z
from billfold.sandbox.scenarios.recording_client import RecordingClient

BOX, V1, V2 = "/api/v1/sandbox", "/api/v1", "/api/v2"
_ADDRESS = {
    "street_address": "9 Larkmoor Road",
    "city": "Vantorp",
    "state": "NV",
    "postal_code": "89001",
    "country": "US",
}
_OPENS = time(10, 0)
_MONDAY, _WEEK = 0, timedelta(days=7)


class MarketChanges(NamedTuple):
    """What a scenario changes of the market: rates by basis points from the day after a day, and a closed day."""

    shift_rates: Callable[[date, int], None]
    close_market: Callable[[date, str], None]


class Player:
    """One playing of a scenario. `ids` are those of what it has made, by names of its own."""

    def __init__(self, client: RecordingClient, market: MarketChanges, customer_name: str) -> None:
        self.client = client
        self.market = market
        self.customer_name = customer_name
        self.ids: dict[str, str] = {}

    # -- time ------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Return what the bank's clock shows."""
        return datetime.fromisoformat(self.client.get(f"{BOX}/clock/").at("now"))

    def today(self) -> date:
        """Return the day in New York."""
        return et_date(self.now())

    def go_to(self, day: date, at: time = _OPENS) -> str:
        """Move the clock to a time of a day in New York, unless it is later already; say what was done on the way."""
        until = et_instant(day, at)
        if until <= self.now():
            return "nothing"
        answer = self.client.post(f"{BOX}/clock/advance/", {"until": iso_z(until)})
        return _counted(answer.at("happened"))

    def next_week(self) -> str:
        """Move the clock to the next Monday on which the bank is open."""
        now = self.now().astimezone(ET)
        monday = now.date() + timedelta(days=(7 - now.weekday()) % 7 or 7)
        while True:
            happened = self.go_to(monday)
            if self.client.get(f"{BOX}/clock/").at("business_date") == monday.isoformat():
                self.ids["monday"] = monday.isoformat()
                return f"{monday:%A, %B} {monday.day}. On the way: {happened}."
            monday += _WEEK

    def weekday(self, days: int) -> date:
        """Return the day so many days after the Monday of the story."""
        return date.fromisoformat(self.ids["monday"]) + timedelta(days=days)

    # -- who and what there is -----------------------------------------------------------------

    def open_customer(self) -> None:
        """Make the customer of this playing."""
        self.ids["customer"] = self.client.post(f"{BOX}/customers/", {"name": self.customer_name}).at("id")

    def open_pocket(self, name: str, strategy: str) -> str:
        """Open a Pocket of the customer; return its id."""
        path = f"{V2}/customers/{self.ids['customer']}/pockets/"
        pocket = str(self.client.post(path, {"pocket_name": name, "deposit_strategy_id": strategy}).at("id"))
        self.ids[name] = pocket
        self.ids[f"{name} portal"] = self.client.get(f"{V2}/pockets/{pocket}/portals/").at("items.0.id")
        return pocket

    def add_counterparty(self, name: str, kind: str, number: str) -> str:
        """Add a business at another bank, verified; return its id."""
        account = (
            {"account_number": number, "account_type": "CHECKING"}
            if kind == "ach"
            else {"identifier": number, "address": _ADDRESS}
        )
        body = {
            "type": kind,
            "counterparty_name": {"type": "business", "business_name": name},
            "routing_number": "021000021",
            "verification": {"type": "incoming_wire"},
            **account,
        }
        made = self.client.post(f"{V2}/customers/{self.ids['customer']}/counterparties/", body).at("id")
        self.client.post(f"{BOX}/counterparty-verification/", {"counterparty_id": made, "status": "APPROVED"})
        self.ids[name] = str(made)
        return str(made)

    def value(self, pocket: str) -> str:
        """Return what a Pocket is worth."""
        return str(self.client.get(f"{V2}/pockets/{self.ids[pocket]}/").at("portfolio.total_value.formatted"))

    # -- money ------------------------------------------------------------------------------------

    def receive_wire(self, pocket: str, cents: int, sender: str) -> None:
        """Let a wire arrive."""
        body = {"portal_id": self.ids[f"{pocket} portal"], "amount_usdc": cents, "sender_name": sender}
        self.client.post(f"{BOX}/wire/", body)

    def receive_ach(self, pocket: str, cents: int, company: str) -> None:
        """Let an ACH credit arrive."""
        body = {"account_id": self.ids[pocket], "amount_usdc": cents, "company_name": company}
        self.client.post(f"{BOX}/fund/", body)

    def send_wire(self, pocket: str, payee: str, cents: int, description: str) -> str:
        """Send a wire; return its id."""
        body = {"counterparty_id": self.ids[payee], "amount_usdc": cents, "description": description}
        return str(self.client.post(f"{V1}/service-accounts/{self.ids[pocket]}/wires/", body).at("id"))

    def originate(self, pocket: str, payee: str, cents: int, *, direction: str = "CREDIT", purpose: str) -> str:
        """Originate an ACH entry; return its id."""
        body = {
            "counterparty_id": self.ids[payee],
            "direction": direction,
            "amount_usdc": cents,
            "sec_code": "PPD",
            "company_entry_description": purpose,
        }
        path = f"{V1}/service-accounts/{self.ids[pocket]}/ach-originating/"
        return str(self.client.post(path, body).at("id"))

    def submit_ach(self) -> None:
        """Send every origination that waits for a window."""
        self.client.post(f"{BOX}/ach/submit/", {})

    def move_ach(self, origination: str, move: str, **more: str) -> None:
        """Let something happen to an origination."""
        self.client.post(f"{BOX}/ach/{self.ids[origination]}/", {"move": move, **more})

    def ach_status(self, pocket: str, origination: str) -> str:
        """Return the status of an origination."""
        path = f"{V1}/service-accounts/{self.ids[pocket]}/ach-originating/{self.ids[origination]}/"
        return str(self.client.get(path).at("status"))

    def simulate(self, path: str, **body: Any) -> dict[str, Any]:
        """Let something happen that the sandbox has an operation for."""
        return self.client.post(f"{BOX}/{path}", body).body or {}


def seed_of(bank_seed: bytes, scenario: str, nth: int) -> bytes:
    """Return what the keys of a playing derive from: the same in the same bank."""
    return hashlib.blake2b(f"{scenario}:{nth}".encode(), key=bank_seed[:64], digest_size=32).digest()


def _counted(happened: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in happened.items()) or "nothing"
