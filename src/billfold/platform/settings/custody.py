"""The settings of custody: how the bank and its custodian exchange messages."""

from dataclasses import dataclass

from billfold.platform.settings import kinds
from billfold.platform.settings.kinds import setting
from billfold.platform.settings.trading_desk import TradingDeskSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CustodySettings(TradingDeskSettings):
    """A production bank that trades needs a custodian."""

    custodian: str | None = setting(
        kinds.CUSTODIAN, "The carrier of the custodian's messages. If unset, a sandbox simulates a custodian.", None
    )
    custodian_bic: str = setting(kinds.BIC, "The custodian's BIC, in messages to it.", "CUSTUS33")
    custody_account: str = setting(
        kinds.text("an account", max_length=35), "The bank's account of bills at the custodian.", "BILLFOLD"
    )
    settlement_fail_bps: int = setting(
        kinds.integer(0, 10_000, "basis points"), "The yearly rate at which the cost of a fail is shown.", 300
    )
