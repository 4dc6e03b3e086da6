"""All settings as a table, for the documentation."""

from dataclasses import fields

from billfold.platform.settings.mistakes import FILE_SUFFIX, format_setting, variable_name
from billfold.platform.settings.settings import Settings, declared_settings


def reference() -> str:
    """Return the table of all settings as Markdown: variable, default, expected, meaning."""
    rows = ["| Variable | Default | Expected | Meaning |", "|---|---|---|---|"]
    for each in fields(Settings):
        declared = declared_settings()[each.name]
        names = f"`{variable_name(each.name)}`"
        if declared.secret:
            names += f" or `{variable_name(each.name)}{FILE_SUFFIX}`"
        rows.append(f"| {names} | {format_setting(each.default)} | {declared.kind.expected} | {declared.meaning} |")
    return "\n".join(rows) + "\n"
