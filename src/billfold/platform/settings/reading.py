"""One setting, read from its variable or the file that another variable names."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from billfold.platform.settings.kinds import Setting
from billfold.platform.settings.mistakes import FILE_SUFFIX, MASK, SettingMistake, variable_name

_GROUP_OR_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_setting(
    name: str, declared: Setting, provided: Mapping[str, str], values: dict[str, Any], mistakes: list[SettingMistake]
) -> None:
    """Read one setting into `values`, or what is wrong with it into `mistakes`."""
    variable = variable_name(name)
    raw = provided.get(variable)
    file_name = provided.get(variable + FILE_SUFFIX) if declared.secret else None
    if raw is not None and file_name is not None:
        expected = f"nothing, since {variable}{FILE_SUFFIX} is set"
        mistakes.append(SettingMistake(variable, MASK, expected))
        return
    if file_name is not None:
        raw = _secret_file(variable + FILE_SUFFIX, Path(file_name), mistakes)
    if raw is None:
        return
    try:
        values[name] = declared.kind.read_line(raw)
    except ValueError:
        displayed = MASK if declared.secret else raw
        mistakes.append(SettingMistake(variable, displayed, declared.kind.expected))


def _secret_file(variable: str, path: Path, mistakes: list[SettingMistake]) -> str | None:
    try:
        mode, content = path.stat().st_mode, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        mistakes.append(SettingMistake(variable, str(path), "a file that can be read"))
        return None
    if mode & _GROUP_OR_OTHERS:
        expected = "a file that nobody else can read (chmod 600)"
        mistakes.append(SettingMistake(variable, str(path), expected))
        return None
    return content
