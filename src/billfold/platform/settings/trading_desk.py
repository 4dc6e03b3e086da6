"""The settings of the trading desk: its dealers and the limits of its policy."""

from dataclasses import dataclass
from datetime import time

from billfold.platform.settings import kinds
from billfold.platform.settings.kinds import setting
from billfold.platform.settings.prices import PriceSettings

_FACE = kinds.integer(100, 1_000_000_000_000, "dollars")


@dataclass(frozen=True, slots=True, kw_only=True)
class TradingDeskSettings(PriceSettings):
    """A bank without dealers has no desk."""

    dealers: tuple[str, ...] = setting(
        kinds.list_of(kinds.DEALER),
        "The dealers with whom the bank covers its trades. If unset, they are assumed to be filled at their price.",
        (),
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
