"""What is wrong with the settings: every mistake, secrets hidden."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SettingMistake:
    """One setting that is wrong: its variable, what it is now, what is expected."""

    name: str
    value: str | None
    expected: str
    unknown: bool = False

    @property
    def sentence(self) -> str:
        """What is wrong, in one line."""
        if self.unknown:
            return f"{self.name} is not a setting; expected {self.expected}"
        now = "is not set" if self.value is None else f"is {self.value!r}"
        return f"{self.name} {now}; expected {self.expected}"


class SettingsError(Exception):
    """The settings are wrong. Holds every mistake, secrets hidden."""

    def __init__(self, mistakes: list[SettingMistake]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(mistake.sentence for mistake in mistakes))
