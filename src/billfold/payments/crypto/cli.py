"""`billfold crypto`: what deposits and withdrawals have of it."""

from billfold.payments.crypto.cli_group import crypto
from billfold.payments.crypto.deposits import cli as deposits_cli
from billfold.payments.crypto.withdrawals import cli as withdrawals_cli

__all__ = ["crypto", "deposits_cli", "withdrawals_cli"]
