"""The settings of reconciliation: whose statements the bank expects."""

from dataclasses import dataclass

from billfold.platform.settings import kinds
from billfold.platform.settings.custody import CustodySettings
from billfold.platform.settings.kinds import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationSettings(CustodySettings):
    """Without an account or a dealer, no statement is missed."""

    reserve_account: str | None = setting(
        kinds.text("an account number", max_length=34),
        "The account of the reserve at another bank. If unset, no statement of it is expected.",
        None,
    )
    dealer_recaps: tuple[str, ...] = setting(
        kinds.list_of(kinds.DEALER), "The dealers that send a recap of every day on which they traded.", ()
    )
