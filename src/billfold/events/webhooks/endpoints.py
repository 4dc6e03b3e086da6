"""The address of a subscription, looked at when it is given; it is looked at again at each call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from billfold.platform.errors import InvalidInput
from billfold.platform.network.ssrf import (
    ForbiddenAddress,
    NoSuchHost,
    Resolver,
    check_public_form,
    parse_target,
    resolve_allowed,
)

if TYPE_CHECKING:
    from billfold.platform.settings.settings import Settings


async def check_url(url: str, settings: Settings, *, resolve: Resolver | None = None) -> None:
    """Refuse an address that no webhook is sent to: InvalidInput at body.url.

    A name that has no address now may get one before anything is delivered, so it is accepted.
    """
    try:
        target = parse_target(url)
        try:
            await resolve_allowed(target, allowed=settings.webhook_allowed_networks, resolve=resolve)
        except NoSuchHost:
            check_public_form(target)
    except ForbiddenAddress as refused:
        raise InvalidInput.at("body", "url", msg=str(refused)) from None
