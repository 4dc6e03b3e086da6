"""The available scenarios, and the player: it uses the Partner API, like a real partner.

A scenario is a file of steps. A step sends requests of `requests.json`, and calls functions of a `Player`. Names
in braces refer to values given or kept before: `{pocket}`, or `{{payee}}` for the value kept under a payee's name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from billfold.payments.cards.processor import KEY_BITS
from billfold.platform.dates import ET, et_date, et_instant, iso_z
from billfold.sandbox.running_sandbox import SandboxFile, partner_http
from billfold.sandbox.scenarios.story import CLOCK, RecordingClient


class Progress(Protocol):
    """The interface to which a scenario reports its progress."""

    def begin(self, title: str) -> None:
        """Begin the next step; the one before it is completed."""

    def note(self, detail: str) -> None:
        """Report the result of the current step."""


_NAME: Final = re.compile(r"\{([^{}]+)\}")


class MarketChanges(NamedTuple):
    """Market changes of a scenario: rates by basis points from the day after a day, and a closed day."""

    shift_rates: Callable[[date, int], None]
    close_market: Callable[[date, str], None]


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
    """A story that can be played repeatedly, each time by a new customer."""

    name: str
    description: str
    steps: list[Step]


def _content(name: str) -> bytes:
    return resources.files(__package__).joinpath(f"{name}.json").read_bytes()


_REQUESTS: Final = msgspec.json.decode(_content("requests"), type=dict[str, list[Request]])
_READ: Final = (msgspec.json.decode(_content(name), type=Scenario) for name in ("bad_week", "payday", "card_month"))
SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType({each.name: each for each in _READ})


class Player:
    """One play of a scenario. `kept` holds its parameters and results, by names of its own."""

    def __init__(self, client: RecordingClient, market: MarketChanges, name: str) -> None:
        self._client, self._market = client, market
        self._kept: dict[str, Any] = {"name": name}
        self._monday = date.min

    def play(self, step: Step) -> str:
        """Run a step; return its result."""
        for name, values in step.do:
            if name in _REQUESTS:
                self._send(_REQUESTS[name], values)
            else:
                getattr(self, name)(**values)
        return str(_filled(step.says, self._kept))

    def _send(self, requests: list[Request], values: Mapping[str, Any]) -> None:
        for each in requests:
            known = self._kept | _filled(values, self._kept)
            method = self._client.get if each.get else self._client.post
            answer = method(_filled(each.get or each.post, known), *([] if each.get else [_filled(each.body, known)]))
            keep = _filled(each.keep, known)
            self._kept |= {name: answer.at(place) for name, place in keep.items()}

    def go_to(self, day: int, at: str = "10:00") -> None:
        """Move the clock to a time so many days after the Monday of the story, unless it is later already."""
        until = et_instant(self._monday + timedelta(days=day), time.fromisoformat(at))
        happened = {}
        if until > self._now():
            happened = self._client.post(f"{CLOCK}advance/", {"until": iso_z(until)}).at("happened")
        self._kept["happened"] = ", ".join(f"{kind} {count}" for kind, count in happened.items()) or "nothing"

    def next_week(self) -> None:
        """Move the clock to the next Monday on which the bank is open."""
        now = self._now().astimezone(ET)
        self._monday = now.date() + timedelta(days=7 - now.weekday())
        self.go_to(0)
        while self._client.get(CLOCK).at("business_date") != self._monday.isoformat():
            self._monday += timedelta(days=7)
            self.go_to(0)
        self._kept["when"] = f"{self._monday:%A, %B} {self._monday.day}. On the way: {self._kept['happened']}."

    def close_market(self, day: int, reason: str) -> None:
        """Close the bond market on a day of the story."""
        self._kept["closed"] = self._monday + timedelta(days=day)
        self._market.close_market(self._kept["closed"], reason)

    def shift_rates(self, basis_points: int) -> None:
        """Change rates from tomorrow on."""
        self._market.shift_rates(et_date(self._now()), basis_points)

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
    scenario: Scenario, credentials: SandboxFile, market: MarketChanges, *, bank_seed: bytes, progress: Progress
) -> None:
    """Play a scenario; blocks. Raises CliError if the bank refuses something.

    Names and ids of its objects derive from the number of times this bank has played it, so they are reproducible.
    """
    # The client is generated from the document of the bank's API, to which scenarios belong.
    from billfold_client.partner import PartnerApi  # noqa: PLC0415

    with partner_http(credentials) as http:
        title = scenario.name.replace("-", " ").capitalize()
        earlier = [each for each in PartnerApi(http).list_customers() if str(each.name).startswith(f"{title} ")]
        nth = len(earlier) + 1
        seed = hashlib.blake2b(f"{scenario.name}:{nth}".encode(), key=bank_seed[:64], digest_size=32).digest()
        player = Player(RecordingClient(http, seed=seed), market, f"{title} {nth}")
        for step in scenario.steps:
            progress.begin(step.title)
            progress.note(player.play(step))
