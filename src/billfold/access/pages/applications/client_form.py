"""The form that registers an OAuth client, of a company or a service user, with its first key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Response

from billfold.access.pages.page_context import PageServer
from billfold.access.pages.session import PageContext
from billfold.access.team.transaction import Administrator
from billfold.platform.errors import InvalidInput

_SCOPE = "scope."


def chosen_scopes(form: Mapping[str, str]) -> tuple[str, ...]:
    """Return the scopes whose boxes are ticked."""
    return tuple(each.removeprefix(_SCOPE) for each in form if each.startswith(_SCOPE))


def client_form(
    server: PageServer,
    template: str,
    context: PageContext,
    by: Administrator,
    *,
    given: Mapping[str, str],
    scopes: Mapping[str, str],
    wrong: InvalidInput | None = None,
) -> Response[Any]:
    """Return the form as it was filled in, with the first mistake of each field."""
    messages = {} if wrong is None else {str(each.loc[-1]): each.msg for each in reversed(wrong.errors)}
    if "scopes" in messages:
        messages["scopes"] = "choose at least one of these"
    status = 422 if wrong else 200
    return server.theme.page(context, template, status=status, by=by, given=given, wrong=messages, scopes=scopes)
