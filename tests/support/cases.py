"""Cases of one test that share its fixtures."""

import inspect
from functools import wraps
from typing import Any


def in_one_bank(names, cases, ids=None):
    """Like `pytest.mark.parametrize`, but one bank serves all cases, as opening one takes longer than most cases do.

    For tests whose cases do not see what earlier ones left. A failure notes its case.
    """
    names = [each.strip() for each in names.split(",")] if isinstance(names, str) else names
    cases = [tuple(case) if len(names) > 1 else (case,) for case in cases]

    def decorate(test):
        @wraps(test)
        async def run_all(**fixtures):
            for name, case in zip(ids or cases, cases, strict=True):
                try:
                    await test(**fixtures, **dict(zip(names, case, strict=True)))
                except BaseException as error:
                    error.add_note(f"The case is {name}.")
                    raise

        signature = inspect.signature(test)
        fixtures = [each for name, each in signature.parameters.items() if name not in names]
        shown: Any = run_all
        shown.__signature__ = signature.replace(parameters=fixtures)
        return shown

    return decorate
