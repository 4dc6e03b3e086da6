"""A scenario: named steps, each of which does something and says what came of it."""

from collections.abc import Callable
from typing import NamedTuple

from billfold.sandbox.scenarios.player import Player


class Step(NamedTuple):
    """One step, in the order in which they are played."""

    title: str
    act: Callable[[Player], str]


class Scenario(NamedTuple):
    """A story that can be played again and again, each time by a customer of its own."""

    name: str
    description: str
    steps: tuple[Step, ...]
