"""The available scenarios, and the player: it uses the Partner API, like a real partner.

A scenario is a list of steps. A step sends requests of `requests.json`, and calls functions of a `Player` or of its
`Interventions`. It fails if the bank refuses something, or if what the step wants to `see` does not come. Names in
braces refer to values given or kept before: `{pocket}`, or `{{payee}}` for the value kept under a payee's name.
"""

from __future__ import annotations

import hashlib
import re
import time as clock
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from importlib import resources
from typing import Any, Final, Protocol

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from billfold.cli.context import CliError
from billfold.payments.cards.processor import KEY_BITS
from billfold.platform.clock import monotonic
from billfold.platform.dates import ET, et_date, et_instant, iso_z
from billfold.sandbox.running_sandbox import SandboxFile, partner_http
from billfold.sandbox.scenarios.interventions import Interventions
from billfold.sandbox.scenarios.story import CLOCK, RecordingClient


class Progress(Protocol):
    """The interface to which a scenario reports its progress."""

    def begin(self, title: str) -> None:
        """Begin the next step; the one before it is completed."""

    def note(self, detail: str) -> None:
        """Report the result of the current step."""


_NAME: Final = re.compile(r"\{([^{}]+)\}")
_DESK: Final = "/api/v1/sandbox/desk/"
PATIENCE_SECONDS: Final = 60.0
"""Real time for what operators must see."""
_POLL_SECONDS: Final = 0.25
_DAYS_MAX, _SHOWN = 8, 1000


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request, and the values kept from its answer: names, each with a place in it."""

    get: str = ""
    post: str = ""
    body: Any = None
    keep: dict[str, str] | str = {}


class Step(msgspec.Struct, frozen=True):
    """A step: the operations with their values, and the text shown afterwards."""

    title: str
    do: list[tuple[str, dict[str, Any]]]
    says: str


class Scenario(msgspec.Struct, frozen=True):
    """A story that can be played repeatedly, each time by a new customer; a bad day of the trading desk is short."""

    name: str
    description: str
    steps: list[Step]
    is_bad_day: bool = False


def _content(name: str) -> bytes:
    return resources.files(__package__).joinpath(f"{name}.json").read_bytes()


_REQUESTS: Final = msgspec.json.decode(_content("requests"), type=dict[str, list[Request]])
_READ: Final = [msgspec.json.decode(_content(name), type=Scenario) for name in ("bad_week", "payday", "card_month")]
_BAD_DAYS: Final = msgspec.json.decode(_content("bad_days"), type=list[Scenario])
_ALL_BAD_DAYS: Final = Scenario(
    "bad-days",
    "All bad days of the trading desk, one after the other.",
    [step for day in _BAD_DAYS for step in day.steps],
)
SCENARIOS: Final[Mapping[str, Scenario]] = {each.name: each for each in (*_READ, _ALL_BAD_DAYS, *_BAD_DAYS)}


class Sight(msgspec.Struct, frozen=True):
    """A sight that operators must have: rows `of` a list that are like `where`, or a `count` of them, or a value."""

    of: str
    where: Any = None
    count: int | None = None
    keep: str = ""
    at: str = _DESK


class Player:
    """One play of a scenario. `kept` holds its parameters and results, by names of its own."""

    def __init__(
        self,
        client: RecordingClient,
        outside: Interventions,
        name: str,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._client, self._outside, self._patience_seconds = client, outside, patience_seconds
        self._kept: dict[str, Any] = {"name": name}
        self._day = self._quiet_day = date.min
        self._known: set[str] = set()

    def play(self, step: Step) -> str:
        """Run a step; return its result."""
        for name, values in step.do:
            if name in _REQUESTS:
                self._send(_REQUESTS[name], values)
            elif hasattr(self, name):
                getattr(self, name)(**_filled(values, self._kept))
            else:
                getattr(self._outside, name)(*_filled(values, self._kept).values())
        return str(_filled(step.says, self._kept))

    def _send(self, requests: list[Request], values: Mapping[str, Any]) -> None:
        for each in requests:
            known = self._kept | _filled(values, self._kept)
            method = self._client.get if each.get else self._client.post
            answer = method(_filled(each.get or each.post, known), *([] if each.get else [_filled(each.body, known)]))
            keep = _filled(each.keep, known)
            self._kept |= {name: answer.at(place) for name, place in keep.items()}

    def go_to(self, day: int, at: str = "10:00") -> None:
        """Move the clock to a time so many days after the day of the story, unless it is later already."""
        until = et_instant(self._day + timedelta(days=day), time.fromisoformat(at))
        happened = {}
        if until > self._now():
            happened = self._client.post(f"{CLOCK}advance/", {"until": iso_z(until)}).at("happened")
        self._kept["happened"] = ", ".join(f"{kind} {count}" for kind, count in happened.items()) or "nothing"

    def next_week(self) -> None:
        """Move the clock to the next Monday on which the bank is open."""
        now = self._now().astimezone(ET)
        self._day = now.date() + timedelta(days=7 - now.weekday())
        self.go_to(0)
        while self._client.get(CLOCK).at("business_date") != self._day.isoformat():
            self._day += timedelta(days=7)
            self.go_to(0)
        self._kept["when"] = f"{self._day:%A, %B} {self._day.day}. On the way: {self._kept['happened']}."

    def next_day(self, at: str = "10:00") -> None:
        """Move the clock to a time of the next day on which the bank is open."""
        self._day = self._now().astimezone(ET).date()
        while True:
            self._day += timedelta(days=1)
            self.go_to(0, at)
            if self._client.get(CLOCK).at("business_date") == self._day.isoformat():
                return

    def cut_off(self) -> None:
        """Move the clock to the instant by which the desk covers everything."""
        self._client.post(f"{CLOCK}advance/", {"until": self._client.get(_DESK).at("cover_by")})

    def calm(self) -> None:
        """Let dealers and statements behave again."""
        self._send(_REQUESTS["behave"], {})

    def quiet(self) -> None:
        """Let everybody outside behave, cover what is open, and regard what operators see as known."""
        self.calm()
        self.covered()
        lists = (each for each in self._client.get(_DESK).body.values() if isinstance(each, list))
        self._known = {row["id"] for rows in lists for row in rows if "id" in row}
        self._quiet_day = self._day

    def covered(self) -> None:
        """Cover everything, and require that dealers have sold to the bank what customers hold."""
        self._send(_REQUESTS["cover"], {})
        self.see(of="uncovered_units", where=0)

    def see(self, **sought: Any) -> None:
        """Wait until an answer has the rows of a `Sight`, or its value. Raises CliError if it does not come.

        Rows that were known on the quiet day do not count. The fields of the first one are kept: `{order status}`.
        """
        sight, until = Sight(**sought), monotonic() + self._patience_seconds
        while not self._sees(sight):
            if monotonic() > until:
                self._miss(sight)
            clock.sleep(_POLL_SECONDS)

    def see_in_days(self, **sought: Any) -> None:
        """Move the clock from day to day until an answer has such rows. Raises CliError if it never has."""
        for _ in range(_DAYS_MAX):
            self.next_day("10:30")
            if self._sees(Sight(**sought)):
                return
        self._miss(Sight(**sought))

    def _sees(self, sight: Sight) -> bool:
        found = self._client.get(sight.at).at(sight.of)
        if not isinstance(found, list):
            return bool(found == sight.where)
        rows = [row for row in found if (sight.where or {}).items() <= row.items() and self._is_new(row)]
        if rows:
            self._kept |= {f"{sight.keep or sight.of} {name}": value for name, value in rows[0].items()}
        return bool(rows) if sight.count is None else len(rows) == sight.count

    def _is_new(self, row: Mapping[str, Any]) -> bool:
        began = self._quiet_day.isoformat()
        return row.get("id") not in self._known and str(row.get("day", began)) >= began

    def _miss(self, sight: Sight) -> None:
        wanted = f"{'' if sight.count is None else f'{sight.count} '}{sight.of} {sight.where}"
        found = str(self._client.get(sight.at).at(sight.of))[:_SHOWN]
        raise CliError(f"{wanted} did not come. There is {found}", "See the logs of the sandbox.")

    def hold_reserve(self, cents: int) -> None:
        """Make the reserve of now the floor: nothing may leave by wire. Keep what must come in for these cents."""
        available = self._client.get(_DESK).at("available_cents")
        self._kept["missing"] = cents + max(-available, 0)
        self._outside.change_settings({"reserve_floor_cents": str(max(available, 0))})

    def close_market(self, day: int, reason: str) -> None:
        """Close the bond market on a day of the story."""
        self._kept["closed"] = self._day + timedelta(days=day)
        self._outside.close_market(self._kept["closed"], reason)

    def shift_rates(self, basis_points: int) -> None:
        """Change rates from tomorrow on."""
        self._outside.shift_rates(et_date(self._now()), basis_points)

    def unread_key(self) -> None:
        """Create a public key without a private one: nobody can read the number of the card."""
        digest = hashlib.shake_256(self._kept["customer"].encode()).digest(KEY_BITS // 8)
        key = rsa.RSAPublicNumbers(65_537, int.from_bytes(digest) | 1 << KEY_BITS - 1 | 1).public_key()
        self._kept["public_key"] = key.public_bytes(Encoding.PEM, PublicFormat.PKCS1).decode()

    def _now(self) -> datetime:
        return datetime.fromisoformat(self._client.get(CLOCK).at("now"))


def _filled(value: Any, known: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return a value with names in braces replaced: unchanged if alone in a text, else as words."""
    if isinstance(value, dict):
        return {_filled(name, known): _filled(each, known) for name, each in value.items()}
    while isinstance(value, str) and (found := _NAME.search(value)):
        name = known[found[1]]
        if found[0] == value:
            return name
        words = str(len(name) if isinstance(name, list) else name)
        value = value[: found.start()] + words + value[found.end() :]
    return value


def play(
    scenario: Scenario, credentials: SandboxFile, outside: Interventions, *, bank_seed: bytes, progress: Progress
) -> None:
    """Play a scenario; blocks. Raises CliError if the bank refuses something.

    Names and ids of its objects derive from the number of times this bank has played it and from the bank's time, so
    they are reproducible, and a play after one that failed early repeats none of its requests.
    """
    # The client is generated from the document of the bank's API, to which scenarios belong.
    from billfold_client.partner import PartnerApi  # noqa: PLC0415

    with partner_http(credentials) as http:
        title = scenario.name.replace("-", " ").capitalize()
        api = PartnerApi(http)
        earlier = [each for each in api.list_customers() if str(each.name).startswith(f"{title} ")]
        nth = len(earlier) + 1
        seed = hashlib.blake2b(
            f"{scenario.name}:{nth}:{api.sandbox_clock().now}".encode(), key=bank_seed[:64], digest_size=32
        ).digest()
        player = Player(RecordingClient(http, seed=seed), outside, f"{title} {nth}")
        try:
            for step in scenario.steps:
                progress.begin(step.title)
                progress.note(player.play(step))
        except Exception:
            Player(RecordingClient(http, seed=seed[::-1]), outside, "").calm()
            raise
