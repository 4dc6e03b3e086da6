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
    custodian_account: str | None = setting(
        kinds.text("an account number", max_length=34),
        "The bank's account of bills at the custodian. If unset, no statement of it is expected.",
        None,
    )
    settlement_fail_bps: int = setting(
        kinds.integer(0, 10_000, "basis points"), "The yearly rate at which the cost of a fail is shown.", 300
    )

    @property
    def custody_account(self) -> str:
        """Return the account that messages name: only a simulated custodian needs no number."""
        return self.custodian_account or "BILLFOLD"
