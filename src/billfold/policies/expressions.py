"""Conditions in the Common Expression Language (CEL), checked by type, that always end.

Each fact is a variable of its own with a type, so that a wrong name or type is found before the policy is active.
Macros and regular expressions are left out: the cost of a condition is then limited by its length.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from billfold.policies.types import PaymentFacts, Used

_CONFIG: Final = """
stdlib:
  exclude_macros: [all, exists, exists_one, filter, has, map]
  exclude_functions: [{name: matches}, {name: timestamp}, {name: duration}]
"""
_PREFIX: Final = ("INVALID_ARGUMENT: ERROR: ", "ERROR: ", "INVALID_ARGUMENT: ")


class ConditionError(Exception):
    """A condition that cannot be compiled, or that has no result for these facts. Its text says why."""


def facts_of(payment: PaymentFacts, used: Used) -> dict[str, Any]:
    """Return facts as the values of variables: `payment.payee.name` and so on."""
    return dict([*_flat("payment", payment), *_flat("used", used)])


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - a struct or a value
    if not isinstance(value, msgspec.Struct):
        yield name, value
        return
    for field in value.__struct_fields__:
        yield from _flat(f"{name}.{field}", getattr(value, field))


@lru_cache(1)
def _environment() -> Any:  # noqa: ANN401 - the library has no types
    from cel_expr_python import cel  # noqa: PLC0415 - 14 MB, which only customers with a policy need

    kinds = {int: cel.Type.INT, str: cel.Type.STRING, list: cel.Type.List(cel.Type.STRING)}
    variables = {name: kinds[type(value)] for name, value in facts_of(PaymentFacts(), Used()).items()}
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_CONFIG), variables=variables)


def bind(facts: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the library has no types
    """Return facts as all conditions of a decision read them, converted once."""
    return _environment().Activation(facts)


class CompiledCondition:
    """A condition, ready to be evaluated."""

    def __init__(self, text: str) -> None:
        """Raises ConditionError."""
        env = _environment()
        try:
            self._expression = env.compile(text)
        except (RuntimeError, TypeError, ValueError) as wrong:
            raise ConditionError(_message(str(wrong))) from None
        kind = str(self._expression.return_type())
        if kind != "BOOL":
            raise ConditionError(f"must be true or false, and is of type {kind}")

    def holds(self, bound: Any) -> bool:  # noqa: ANN401 - the library has no types
        """Return whether it is true of facts that were bound. Raises ConditionError."""
        try:
            value = self._expression.eval(bound).value()
        except (RuntimeError, TypeError, ValueError) as wrong:
            raise ConditionError(_message(str(wrong))) from None
        if isinstance(value, bool):
            return value
        raise ConditionError(_message(str(value)))  # an error is a value, too


def _message(text: str) -> str:
    """Return the first line of a message of the library, without its prefixes and its code."""
    line = text.splitlines()[0] if text else "no result"
    for prefix in _PREFIX:
        line = line.removeprefix(prefix)
    return line.removeprefix("<input>:").removesuffix(" [INVALID_ARGUMENT]").removesuffix(" (in container '')")[:300]
