"""The profile of a customer: a JSON object whose parts are replaced one by one."""

from typing import Any


def merge_profile(profile: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the profile with these parts replaced; a part that is None is removed."""
    merged = {**profile, **changes}
    return {name: part for name, part in merged.items() if part is not None}
