"""The page of all settings, made from what is declared of them."""

from dataclasses import fields

from billfold.platform.settings.settings import FILE_SUFFIX, Settings, declared_settings, variable_name
from billfold.platform.settings.validation import format_setting


def reference() -> str:
    """Return the table of all settings as Markdown: variable, default, expected, meaning."""
    rows = ["| Variable | Default | Expected | Meaning |", "|---|---|---|---|"]
    for setting in fields(Settings):
        declaration = declared_settings()[setting.name]
        names = f"`{variable_name(setting.name)}`"
        if declaration.secret:
            names += f" or `{variable_name(setting.name)}{FILE_SUFFIX}`"
        rows.append(
            f"| {names} | {format_setting(setting.default)} | {declaration.kind.expected} | {declaration.meaning} |"
        )
    return "\n".join(rows) + "\n"
