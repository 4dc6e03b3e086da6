"""The opening story: a customer's money becomes bills, moves, settles, matures and is bought again.

It is played only through the public API, by a client that writes every answer to a file byte for byte. Every printed
figure is read from an answer and recorded with its place, so that anybody can look it up in the transcript.
"""

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import UUID

import httpx
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from billfold.cli.context import CliError
from billfold.platform import ids
from billfold.platform.dates import et_date, et_instant, iso_z

DEPOSIT_CENTS = 250_000_00
ACH_CENTS, ACH_TIMES = 15_000_00, 3
MOVED_CENTS = 60_000_00
SENDER = "Northwind Trading LLC"
COMPANY = "Contoso Payroll"
CLOCK = "/api/v1/sandbox/clock/"
_OPENS, _SETTLED = time(9), time(17, 30)

_HOLDINGS = ("CUSIP", "matures", "bills", "mark", "yield", "value")
_HOLDING = ("cusip", "maturity_date", "quantity", "mark_price", "yield_to_maturity", "market_value.formatted")
_TRADES = ("trade", "CUSIP", "bills", "price", "amount", "settles", "status")
_TRADE = ("activity", "cusip", "quantity", "price", "notional.formatted", "settled_date", "status")
_PAYMENTS = ("booked", "", "what", "amount", "status")
_PAYMENT = ("time_booked", "direction", "title", "amount.formatted", "status")
_VALUES = (
    ("cash", "portfolio.cash.formatted"),
    ("total value", "portfolio.total_value.formatted"),
    ("if paid out today", "portfolio.liquidation_value_t0.formatted"),
    ("if paid out tomorrow", "portfolio.liquidation_value_t1.formatted"),
)
_YIELD = (("priced at", "portfolio.pricing_timestamp"), ("cents a second", "portfolio.appreciation_per_second"))
_RIGHT = frozenset({"bills", "mark", "yield", "value", "price", "amount"})
_EARNED = (
    ("earned", "earnings.formatted"),
    ("of which realised", "realised.formatted"),
    ("paid in", "contributions.formatted"),
    ("paid out", "withdrawals.formatted"),
    ("worth now", "end_value.formatted"),
)
_LATER = (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE)
_RETRIES = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the bank. `text` is the body as received."""

    number: int
    method: str
    path: str
    status: int
    text: str
    body: Any = field(repr=False)

    def at(self, where: str) -> Any:  # noqa: ANN401 - whatever the bank answered
        """Return the value at a path like `items.0.amount.formatted`; a last name may have dots itself."""
        found = self.body
        while where and not (isinstance(found, dict) and where in found):
            part, _, where = where.partition(".")
            found = found[int(part)] if isinstance(found, list) else found[part]
        return found[where] if where else found


class RecordingClient:
    """Calls with a signing httpx client, which it closes. Use it as a context manager."""

    def __init__(self, http: httpx.Client, *, seed: bytes, transcript: Path | None = None) -> None:
        self._http = http
        self._seed = seed
        self._transcript = transcript.open("w", encoding="utf-8") if transcript else None
        self.answers: list[Answer] = []

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close connections and the transcript."""
        self._http.close()
        if self._transcript:
            self._transcript.close()

    def get(self, path: str) -> Answer:
        """Read; the path may include a query."""
        return self._call("GET", path, b"")

    def post(self, path: str, body: dict[str, Any] | None = None) -> Answer:
        """Create or change."""
        return self._call("POST", path, b"" if body is None else msgspec.json.encode(body))

    def _call(self, method: str, path: str, body: bytes) -> Answer:
        number = len(self.answers) + 1
        headers = {}
        if method != "GET":  # how often something is read depends on the time that others take
            changes = sum(each.method != "GET" for each in self.answers)
            key = ids.derive(self._seed, ids.command_id("story", str(changes)), 0)
            headers["x-service-idempotency"] = str(key)
        if body:
            headers["content-type"] = "application/json"
        received = self._send(method, path, headers=headers, content=body or None)
        if received.is_error:
            raise CliError(
                f"{method} {path} was answered {received.status_code}: {received.text}", "See the log of the server."
            )
        text = received.text
        parsed = received.json() if text else None
        answer = Answer(number, method, path, status=received.status_code, text=text, body=parsed)
        self.answers.append(answer)
        if self._transcript:
            line = {"method": method, "path": path, "status": answer.status, "body": text}
            self._transcript.write(msgspec.json.encode(line).decode() + "\n")
            self._transcript.flush()
        return answer

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Send a request, and repeat it when told to retry later: its key makes it idempotent."""
        try:
            response = self._http.request(method, path, **request)
            for _ in range(_RETRIES):
                if response.status_code not in _LATER:
                    break
                clock.sleep(int(response.headers.get("retry-after", 1)))
                response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise CliError(f"{method} {path} did not reach the bank: {error}", "Is the server up?") from error
        return response


class Figure(NamedTuple):
    """A printed figure: the number of the answer, the path in it, the text shown."""

    answer: int
    where: str
    shown: str


@dataclass(slots=True)
class Story:
    """One play of the story by one client."""

    client: RecordingClient
    console: Console
    figures: list[Figure] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def play(self) -> tuple[UUID, UUID]:
        """Play it from start to end; return its Pockets. Raises CliError if a request is refused."""
        customer = self._customer()
        self._begin()
        first = self._open(customer, "Operating reserve", "UST-4W")
        self._wire(first)
        self._show_portfolio(first)
        second = self._open(customer, "Rainy day", "UST-26W")
        self._ach(second)
        self._yield_by_the_second(first)
        for pocket in (first, second):
            self._show_portfolio(pocket)
        self._move(first, second)
        self._settle(first, second)
        self._mature(first)
        self._heading("What was earned, and what is left at the bank")
        for pocket in (first, second):
            self._earnings(pocket)
        for pocket in (first, second):
            self._check_bank_account(pocket)
        return UUID(first), UUID(second)

    # -- what happens ------------------------------------------------------------------

    def _begin(self) -> None:
        """Wait for the next business day if the clock shows a weekend or a holiday."""
        clock = self.client.get(CLOCK)
        today = et_date(datetime.fromisoformat(clock.at("now")))
        if clock.at("business_date") != today.isoformat():
            self._heading("The bank is closed: the next business day")
            self._next_business_day(today)

    def _customer(self) -> str:
        response = self.client.get("/api/v1/customers/")
        place = next(n for n, each in enumerate(response.body["items"]) if each["name"].startswith("Dummy"))
        self._line(f"The customer: {self._show(response, f'items.{place}.name')}")
        return str(response.at(f"items.{place}.id"))

    def _open(self, customer: str, name: str, strategy: str) -> str:
        response = self.client.post(
            f"/api/v2/customers/{customer}/pockets/", {"pocket_name": name, "deposit_strategy_id": strategy}
        )
        self._heading(
            f"Pocket {self._show(response, 'pocket_name')}, strategy {self._show(response, 'deposit_strategy_id')}"
        )
        self._names[response.at("id")] = name
        return str(response.at("id"))

    def _wire(self, pocket: str) -> None:
        portals = self.client.get(f"/api/v2/pockets/{pocket}/portals/")
        self._line(
            f"A wire from {SENDER} goes to account {self._show(portals, 'items.0.account_number')}"
            f" at {self._show(portals, 'items.0.routing_number')}."
        )
        self.client.post(
            "/api/v1/sandbox/wire/",
            {"portal_id": portals.at("items.0.id"), "amount_usdc": DEPOSIT_CENTS, "sender_name": SENDER},
        )
        self._payments(pocket)
        self._cover()

    def _cover(self) -> None:
        """Let the bank buy what it has sold to its customer from its simulated dealers."""
        response = self.client.post("/api/v1/sandbox/dealers/cover/")
        for n in range(len(response.body["executions"])):
            bought = {name: self._show(response, f"executions.{n}.{name}") for name in ("dealer", "cusip", "face")}
            price, paid = (self._show(response, f"executions.{n}.{name}") for name in ("price", "amount"))
            self._line(
                f"The bank buys the bills from {bought['dealer']}, a simulated dealer, over FIX 4.4:"
                f" {bought['face']} dollars of {bought['cusip']} at {price} for {paid}."
            )

    def _ach(self, pocket: str) -> None:
        self.client.post(
            "/api/v1/sandbox/fund/",
            {"account_id": pocket, "amount_usdc": ACH_CENTS, "company_name": COMPANY, "count": ACH_TIMES},
        )
        self._line(f"{COMPANY} pays by ACH.")
        self._payments(pocket)

    def _yield_by_the_second(self, pocket: str) -> None:
        self.client.post(f"/api/v1/sandbox/pockets/{pocket}/", {"real_time_yield": True})
        self._line("The operator switches real-time yield on for the first Pocket.")

    def _move(self, origin: str, destination: str) -> None:
        self._heading("Money moves between the Pockets")
        response = self.client.post(
            "/api/v1/transfers/on-us/",
            {
                "type": "INTERNAL_REALLOCATION",
                "transfer_type": "BANK_TRANSFER",
                "from_account": {"id": origin, "type": "SERVICE_ACCOUNT"},
                "to_account": {"id": destination, "type": "SERVICE_ACCOUNT"},
                "amount": {"type": "REQUESTED_AMOUNT", "amount_usdc": MOVED_CENTS},
                "description": "Put aside for a rainy day",
            },
        )
        self._line(
            f"{self._show(response, 'transfer.amount.formatted')} is"
            f" {self._show(response, 'status')}: bills are sold in one and bought in the other."
        )
        for pocket in (origin, destination):
            self._trades(pocket)
            self._payments(pocket)

    def _settle(self, *pockets: str) -> None:
        self._heading("The next business day: trades settle")
        today = et_date(datetime.fromisoformat(self.client.get(CLOCK).at("now")))
        self._clock(self._next_business_day(today), _SETTLED)
        for pocket in pockets:
            self._trades(pocket)

    def _mature(self, pocket: str) -> None:
        bought = self.client.get(f"/api/v2/pockets/{pocket}/trades/?limit=1")
        self._heading("Weeks later: the bill matures and is bought again")
        self._clock(date.fromisoformat(bought.at("items.0.maturity_date")), _OPENS)
        self._trades(pocket)
        self._show_portfolio(pocket)

    def _check_bank_account(self, pocket: str) -> None:
        response = self.client.get(f"/api/v2/pockets/{pocket}/transactions/?include_sweeps=true&limit=100")
        rows = response.body["items"]
        signs = {"CREDIT": 1, "DEBIT": -1}
        remaining = sum(signs[row["direction"]] * row["amount"]["value"] for row in rows)
        if remaining:
            raise CliError(f"The bank account of {pocket} holds {remaining} cents.", "Run verify.")
        self._line(f"Bank account of {self._names[pocket]}: {len(rows)} movements, sweeps included, come to zero.")

    # -- what is seen --------------------------------------------------------------------

    def _show_portfolio(self, pocket: str) -> None:
        response = self.client.get(f"/api/v2/pockets/{pocket}/")
        self._table(response, "portfolio.securities", _HOLDINGS, fields=_HOLDING, title="Portfolio")
        pairs = [*_VALUES]
        if response.at("portfolio").get("pricing_timestamp"):
            pairs += _YIELD
        self._pairs(response, pairs)

    def _trades(self, pocket: str) -> None:
        response = self.client.get(f"/api/v2/pockets/{pocket}/trades/?limit=10")
        self._table(response, "items", _TRADES, fields=_TRADE, title="Trades, newest first")

    def _payments(self, pocket: str) -> None:
        response = self.client.get(f"/api/v2/pockets/{pocket}/transactions/?limit=10")
        self._table(response, "items", _PAYMENTS, fields=_PAYMENT, title="Transactions, newest first")

    def _earnings(self, pocket: str) -> None:
        response = self.client.get(f"/api/v2/pockets/{pocket}/earnings/?period=all-time")
        self._line(f"Earnings of {self._names[pocket]}")
        self._pairs(response, _EARNED)

    def _next_business_day(self, today: date) -> date:
        """Advance to the morning of the next day on which the bank is open."""
        day = today + timedelta(days=1)
        while self._clock(day, _OPENS).at("business_date") != day.isoformat():
            day += timedelta(days=1)
        return day

    def _clock(self, day: date, at: time) -> Answer:
        response = self.client.post(f"{CLOCK}advance/", {"until": iso_z(et_instant(day, at))})
        done = ", ".join(f"{kind} {self._show(response, f'happened.{kind}')}" for kind in response.at("happened"))
        self._line(
            f"The clock shows {self._show(response, 'now')}, business date"
            f" {self._show(response, 'business_date')}. On the way: {done or 'nothing'}."
        )
        return response

    # -- how it is printed -----------------------------------------------------------------

    def _show(self, response: Answer, where: str) -> str:
        """Return a figure for printing, and record where it was read."""
        found = response.at(where)
        if found is None:
            return "-"
        shown = str(found)
        self.figures.append(Figure(response.number, where, shown))
        return f"[bold]{escape(shown)}[/]"

    def _line(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    def _heading(self, text: str) -> None:
        self.console.print()
        self.console.rule(text, align="left", style="cyan")

    def _pairs(self, response: Answer, pairs: Sequence[tuple[str, str]]) -> None:
        made = Table(box=None, show_header=False, padding=(0, 2, 0, 1))
        for name, where in pairs:
            made.add_row(name, self._show(response, where))
        self.console.print(made)

    def _table(self, response: Answer, of: str, columns: Sequence[str], fields: Sequence[str], *, title: str) -> None:
        made = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column in columns:
            made.add_column(column, justify="right" if column in _RIGHT else "left", no_wrap=True)
        rows: list[Any] = response.at(of)
        for n in range(len(rows)):
            made.add_row(*(self._show(response, f"{of}.{n}.{name}") for name in fields))
        self.console.print(made)
