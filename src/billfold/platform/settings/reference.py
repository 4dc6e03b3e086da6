"""The page of all settings, made from what is declared of them."""

from dataclasses import fields

from billfold.platform.settings.settings import (
    FILE_SUFFIX,
    Settings,
    declared_settings,
    variable_of,
)
from billfold.platform.settings.validation import as_text


def reference() -> str:
    """Return the table of all settings as Markdown: variable, default, expected, meaning."""
    rows = ["| Variable | Default | Expected | Meaning |", "|---|---|---|---|"]
    for one in fields(Settings):
        declared = declared_settings()[one.name]
        names = f"`{variable_of(one.name)}`"
        if declared.secret:
            names += f" or `{variable_of(one.name)}{FILE_SUFFIX}`"
        rows.append(
            f"| {names} | {as_text(one.default)} | {declared.kind.expected} | {declared.meaning} |"
        )
    return "\n".join(rows) + "\n"
