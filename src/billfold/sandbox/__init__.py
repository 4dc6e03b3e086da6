"""Operations that only a sandbox has: external money, instant customers, the clock.

Mounted on the Partner API when the environment is a sandbox; production has no such routes.
"""
