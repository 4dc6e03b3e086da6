"""What is wrong with the settings, all of it at once, in sentences."""

from dataclasses import dataclass
from datetime import datetime, time


@dataclass(frozen=True, slots=True)
class SettingMistake:
    """One setting that is wrong: its variable, what it is now, what is expected."""

    name: str
    value: str | None
    expected: str
    unknown: bool = False

    @property
    def sentence(self) -> str:
        """Say it in one line."""
        if self.unknown:
            return f"{self.name} is not a setting; expected {self.expected}"
        now = "is not set" if self.value is None else f"is {self.value!r}"
        return f"{self.name} {now}; expected {self.expected}"


class SettingsError(Exception):
    """The settings are wrong. Holds every mistake, secrets hidden."""

    def __init__(self, mistakes: list[SettingMistake]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(mistake.sentence for mistake in mistakes))


def format_setting(value: object) -> str:
    """Return a value as people write it."""
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, time):
        return f"{value:%H:%M}"
    return value.isoformat() if isinstance(value, datetime) else str(value)
