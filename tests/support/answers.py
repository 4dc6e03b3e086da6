"""Answers of reads, compared with those of another time."""

CURSORS = ("next_page", "prev_page")
"""Cursors are bound to the instant of their list."""


def comparable(answer):
    """Return an answer without its cursors, its trace, addresses of people and of files, which are those of now.

    Nor does it tell who did what, which is not told as of an instant.
    """
    is_json = answer.headers["content-type"].partition(";")[0].endswith("json")
    return answer.status_code, stable(answer.json()) if is_json else answer.text


def stable(value):
    if isinstance(value, list):
        return [stable(each) for each in value if not isinstance(each, dict) or each.get("label") != "Who did it"]
    if not isinstance(value, dict):
        return value
    left_out = (
        *CURSORS,
        "trace_id",
        "pdf_download_url",
        *(["email"] if value.get("object_type") == "TeamMember" else []),
    )
    return {name: stable(each) for name, each in value.items() if name not in left_out}


def differences(one, other):
    """Return the innermost values in which two answers differ, with their places."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(name, one.get(name), other.get(name)) for name in {**one, **other}]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = [(number, *both) for number, both in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [(one, other)]
    return [(name, *each) for name, first, second in pairs for each in differences(first, second)]
