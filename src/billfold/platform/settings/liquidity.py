"""The settings of liquidity: what must stay in the reserve, what may be borrowed, and limits."""

from dataclasses import dataclass

from billfold.platform.settings import kinds
from billfold.platform.settings.kinds import setting

_CENTS = kinds.integer(0, 10**15, "cents")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiquiditySettings:
    """Without a floor no payment waits for funds of the bank."""

    reserve_floor_cents: int | None = setting(
        _CENTS,
        "What must stay in the reserve account: wires that would take it below wait. If unset, none waits.",
        None,
    )
    credit_line_cents: int = setting(_CENTS, "The committed line of credit, which counts as reserve.", 0)
    wires_day_limit_cents: int | None = setting(
        _CENTS, "What leaves by wire in a day; later wires wait. If unset, or without a floor, there is no limit.", None
    )
    dealer_limit_cents: int | None = setting(
        _CENTS, "Unsettled money with one dealer above which the page Liquidity warns.", None
    )
