"""The whole bank in one process: a seed decides time, order, randomness and every fault. See docs/reliability.md.

Part of the source checkout, not of the wheel. `billfold simulate` runs it.
"""
