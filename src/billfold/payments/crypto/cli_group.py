"""The group of commands `billfold crypto`."""

from billfold.cli.command import CommandGroup

crypto = CommandGroup("crypto", "Stablecoins on chains.", example="withdrawals list")
