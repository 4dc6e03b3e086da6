"""The fates of statements: drawn by seeded rates, for a while all alike, or planned for one statement."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from random import Random
from typing import NamedTuple

from simulation.loop import SimulationLoop


class Fate(StrEnum):
    """The fate of a statement."""

    NONE = "none"
    LOST_BEFORE = "connection lost before"
    LOST_AFTER = "answer lost"
    SERIALIZATION = "serialization failure"
    DEADLOCK = "deadlock"
    TIMEOUT = "statement timeout"
    READ_ONLY = "read-only server"
    NO_ROOM = "no room"
    POOL_EMPTY = "too many connections"

    @property
    def sqlstate(self) -> str | None:
        """The code with which the server refuses the statement, None if it does not."""
        return _SQLSTATES.get(self)


_SQLSTATES = {
    Fate.SERIALIZATION: "40001",
    Fate.DEADLOCK: "40P01",
    Fate.TIMEOUT: "57014",
    Fate.READ_ONLY: "25006",
    Fate.NO_ROOM: "53100",
}
_OF_ACQUIRE = (Fate.POOL_EMPTY,)
_OF_STATEMENT = tuple(fate for fate in Fate if fate not in {Fate.NONE, Fate.POOL_EMPTY})
_OF_END = (Fate.LOST_BEFORE, Fate.LOST_AFTER)
"""Fates of ROLLBACK and of releases: a server does not refuse them."""
SPELLS = (Fate.LOST_BEFORE, Fate.READ_ONLY, Fate.NO_ROOM, Fate.POOL_EMPTY, Fate.TIMEOUT)
"""Fates that may befall all statements for a while."""
SPELL_SECONDS = (0.05, 1.0, 10.0, 30.0)


class Plan(NamedTuple):
    """The nth statement whose text contains `sql` has this fate."""

    sql: str
    nth: int
    fate: Fate

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Return the plan of NTH:FATE:SQL. Raises ValueError."""
        nth, fate, sql = text.split(":", 2)
        return cls(sql, int(nth), Fate(fate))


class Faults:
    """Draws fates. `rate` is the chance of a fault per statement; 0 ends all, plans excepted."""

    def __init__(self, loop: SimulationLoop, random: Random, *, rate: float, plans: tuple[Plan, ...] = ()) -> None:
        self._loop, self._random = loop, random
        self.rate = rate
        self.happened: Counter[str] = Counter()
        self._plans = list(plans)
        self._seen: Counter[str] = Counter()
        self._spell, self._until = Fate.NONE, 0.0

    def begin_spell(self) -> None:
        """Let the database be unavailable, read-only or full for a while."""
        self._spell = self._random.choice(SPELLS)
        self._until = self._loop.now + self._random.choice(SPELL_SECONDS) * self._random.random()
        self.happened[f"spell: {self._spell}"] += 1

    def end(self) -> None:
        """Let nothing happen from now on."""
        self.rate, self._until = 0.0, 0.0

    def draw(self, query: str) -> Fate:
        """Return what becomes of the next statement."""
        fate = self._planned(query)
        if fate is Fate.NONE and self._loop.now < self._until:
            fate = self._spell
        if fate is Fate.NONE and self._random.random() < self.rate:
            fate = self._random.choice(_OF_ACQUIRE if query == "ACQUIRE" else _OF_STATEMENT)
        fate = _fitting(query, fate)
        if fate is not Fate.NONE:
            self.happened[fate] += 1
        return fate

    def _planned(self, query: str) -> Fate:
        self._seen.update({plan.sql for plan in self._plans if plan.sql in query})
        for plan in self._plans:
            if plan.sql in query and self._seen[plan.sql] == plan.nth:
                return plan.fate
        return Fate.NONE


def _fitting(query: str, fate: Fate) -> Fate:
    """Return the fate if a statement of this kind can have it, else none."""
    if query == "ACQUIRE":
        return fate if fate in {Fate.POOL_EMPTY, Fate.NONE} else Fate.NONE
    if fate is Fate.POOL_EMPTY:
        return Fate.NONE
    if query.startswith("ROLLBACK") and fate not in _OF_END:
        return Fate.NONE
    if fate is Fate.READ_ONLY and query.lstrip().upper().startswith(("SELECT", "BEGIN", "COMMIT", "ROLLBACK")):
        return Fate.NONE if "FOR " not in query.upper() else fate
    return fate
