"""Operations that only a sandbox has: money from outside, a customer at once, the clock.

Mounted on the Partner API when the environment is a sandbox; production has no such routes.
"""
