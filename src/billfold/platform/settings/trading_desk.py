"""The settings of the trading desk: its dealers and the limits of its policy."""

import re
from dataclasses import dataclass
from datetime import time
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from typing_extensions import override

from billfold.platform.settings import kinds
from billfold.platform.settings.kinds import SettingType, setting
from billfold.platform.settings.prices import PriceSettings

_FACE = kinds.integer(100, 1_000_000_000_000, "dollars")
_COMP_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


class PriceType(StrEnum):
    """The price type of a dealer, tag 423 of FIX: price per $100, discount rate, or yield, both in percent."""

    PRICE = "1"
    DISCOUNT = "4"
    YIELD = "9"


_PRICE_TYPES = {"": PriceType.PRICE, **{f"/{each.name.lower()}": each for each in PriceType}}


class DealerSession(NamedTuple):
    """A dealer's session over FIX: the names of both sides, and the address. Over TLS unless `is_plain`.

    Or an adapter, `package.module:name`, which takes and reports messages in its place.
    """

    dealer: str
    sender: str
    target: str
    host: str
    port: int
    price_type: PriceType
    is_plain: bool
    adapter: str | None = None

    @override
    def __str__(self) -> str:
        """Return it as it is written in the settings."""
        if self.adapter:
            return f"{self.dealer}=adapter://{self.adapter}/{self.price_type.name.lower()}"
        scheme = "fix" if self.is_plain else "fixs"
        own = f"{self.sender}:{self.target}"
        return f"{self.dealer}={scheme}://{own}@{self.host}:{self.port}/{self.price_type.name.lower()}"


def _session(raw: str) -> DealerSession:
    dealer, _, address = raw.partition("=")
    parts = urlsplit(address)
    price_type = _PRICE_TYPES.get(parts.path)
    if price_type is None:
        raise ValueError(raw)
    if parts.scheme == "adapter" and parts.netloc != kinds.NO_ADAPTER:
        adapter = kinds.ADAPTER.read(parts.netloc)
        return DealerSession(kinds.DEALER.read(dealer), "", "", "", 0, price_type, is_plain=False, adapter=adapter)
    names = parts.username or "", parts.password or ""
    if parts.scheme not in {"fix", "fixs"} or not all(map(_COMP_ID.fullmatch, names)) or parts.query or parts.fragment:
        raise ValueError(raw)
    if not parts.hostname or not parts.port:
        raise ValueError(raw)
    return DealerSession(
        kinds.DEALER.read(dealer),
        *names,
        kinds.HOST.read(parts.hostname),
        parts.port,
        price_type,
        is_plain=parts.scheme == "fix",
    )


SESSION = SettingType(
    "like citadel=fixs://OURS:THEIRS@fix.dealer.example:9876/price, or fix:// without TLS, discount or yield,"
    " or citadel=adapter://package.module:name/price",
    _session,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TradingDeskSettings(PriceSettings):
    """A bank without dealers has no desk."""

    dealers: tuple[str, ...] = setting(
        kinds.list_of(kinds.DEALER),
        "The dealers with whom the bank covers its trades. If unset, they are assumed to be filled at their price.",
        (),
    )
    dealer_sessions: tuple[DealerSession, ...] = setting(
        kinds.list_of(SESSION), "The sessions over FIX with those dealers. People work the others by hand.", ()
    )
    dealer_trusted_ca: Path | None = setting(
        kinds.PATH, "The certificates that sign those of dealers, if not those of the system.", None
    )
    dealer_client_certificate: Path | None = setting(
        kinds.PATH, "The certificate with its key that the bank shows dealers over TLS, in one file of PEM.", None
    )
    desk_interval: int = setting(
        kinds.integer(1, 3600, "seconds"), "The time between two rounds of orders while the market trades.", 60
    )
    desk_cover_by: time = setting(
        kinds.TIME_OF_DAY,
        "The time by which everything is covered; an hour before the close if that is earlier.",
        time(15, 30),
    )
    desk_min_face: int = setting(_FACE, "The smallest order, in face value.", 100_000)
    desk_max_face: int = setting(
        _FACE, "The largest order, in face value: at least twice the smallest one.", 50_000_000
    )
    desk_max_house_face: int = setting(
        kinds.integer(0, 1_000_000_000_000, "dollars"),
        "The face value per bill up to which a rest below the smallest order may stay with the house.",
        100_000,
    )
    desk_max_house_dv01: int = setting(
        kinds.integer(0, 1_000_000_000, "cents"),
        "What all rests together may lose per basis point when everything is covered.",
        100_00,
    )
    desk_max_slippage_bps: int = setting(
        kinds.integer(0, 1_000, "hundredths of a percent"),
        "The distance from the mark at which a price is refused, or flagged if it was executed.",
        5,
    )
    desk_quotes_wanted: int = setting(
        kinds.integer(0, 20), "Dealers to ask for a price per order; an execution with fewer is flagged.", 0
    )
    desk_quote_seconds: int = setting(kinds.integer(1, 3600, "seconds"), "The time for which a quote is good.", 60)
