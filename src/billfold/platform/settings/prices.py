"""The settings of prices: where market data is fetched from, and how old and how far apart prices may be."""

from dataclasses import dataclass
from pathlib import Path

from billfold.platform.settings import kinds
from billfold.platform.settings.kinds import Network, setting
from billfold.platform.settings.liquidity import LiquiditySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSettings(LiquiditySettings):
    """A bank that names no source imports market data by hand."""

    market_sources: tuple[str, ...] = setting(
        kinds.list_of(kinds.MARKET_SOURCE),
        "Where the worker fetches rates, auctions and dealers' quotes. If unset, they are imported by hand.",
        (),
    )
    market_fetch_seconds: int = setting(
        kinds.integer(10, 86_400, "seconds"), "The time between two fetches of a source.", 900
    )
    market_allowed_networks: tuple[Network, ...] = setting(
        kinds.list_of(kinds.NETWORK), "Private networks in which a source may be.", ()
    )
    market_trusted_ca: Path | None = setting(
        kinds.PATH, "A certificate authority that sources are trusted by in addition to the system's (PEM).", None
    )
    max_price_age: int | None = setting(
        kinds.integer(60, 86_400, "seconds"),
        "The age of dealers' quotes at which nothing is bought by them. If unset, prices follow daily rates alone.",
        None,
    )
    stale_haircut_bps: int = setting(
        kinds.integer(0, 1000, "basis points"), "The further cost of a sale while prices are too old.", 25
    )
    max_price_jump: int = setting(
        kinds.integer(1, 5000, "hundredths of a percent"),
        "The distance of a fetched rate from the last published one at which it is refused.",
        50,
    )
    max_quote_distance: int = setting(
        kinds.integer(1, 1000, "hundredths of a percent"),
        "The distance of a quote from the others' at which it is left out.",
        10,
    )
