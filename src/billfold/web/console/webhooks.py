"""Webhook subscriptions with their attempts, and the log of events."""

import base64
import secrets
from datetime import timedelta
from typing import Any

import msgspec
from litestar import get, post

from billfold.events.routes import get_event, list_event_types, list_events
from billfold.events.webhooks import routes
from billfold.events.webhooks.event_groups import PRESETS, grouped, of_preset
from billfold.events.webhooks.routes import list_subscriptions
from billfold.events.webhooks.store import summarize_deliveries
from billfold.events.webhooks.subscriptions import ChangedSubscription, NewSubscription
from billfold.platform.errors import InvalidInput, NotFound
from billfold.web.console.team import ApiTeam, InTeam, paths_of
from billfold.web.forms import Form, body_of, instant_in_zone, ticked
from billfold.web.page_context import RECENT_AUTHENTICATION, FormError, PageResponse, path_id, redirect, shown_again

DELIVERED_WITHIN = timedelta(hours=24)
"""The time whose deliveries are summarized."""
_EVENTS = "/developer/events"
_EVENTS_SHOWN = 30
_SUBSCRIPTIONS = 50


async def _show(team: ApiTeam, subscription_id: str, *, wrong: FormError = "") -> PageResponse:
    key = path_id(subscription_id, "There is no such subscription.")
    found = await team.api.get(routes.get_subscription, subscription_id=key)
    cursor = team.page.query.get("cursor")
    queued = await team.api.get(list_events, subscription_id=key, limit=_QUEUED)
    types = (await team.api.get(list_event_types)).items
    return team.render(
        "developer_subscription",
        wrong=wrong,
        subscription=found,
        rows=await team.api.get(routes.list_delivery_attempts, subscription_id=key, cursor=cursor, limit=_PAGE),
        examples={each.event.event_id for each in queued.items if each.event.sequence is None},
        summary=(await summarize_deliveries(team.page.pool, [key], team.page.now - DELIVERED_WITHIN))[key],
        groups=grouped(types),
        chosen=ticked(team.page.form, "events") or found.events,
        edits=bool(team.page.query.get("edit")) or "url" in team.page.form,
        given=team.page.form,
        form=Form(NewSubscription, team.page.form, found),
        secret=_new_secret(),
    )


@get(paths_of(_EVENTS))
async def show_events(team: InTeam) -> PageResponse:
    """Show events, newest first: all, or those that were queued for one subscription."""
    query, zone = team.page.query, team.page.user.time_zone
    chosen, since = query.get("subscription", ""), query.get("since", "")
    wrong: FormError = ""
    try:
        after = instant_in_zone("since", f"{since}T00:00", zone) if since else None
    except InvalidInput as error:
        after, wrong = None, error
    found = await team.api.get(
        list_events,
        subscription_id=chosen and path_id(chosen),
        after=after,
        cursor=query.get("cursor"),
        limit=_EVENTS_SHOWN,
    )
    subscriptions = await team.api.get(list_subscriptions, limit=_SUBSCRIPTIONS)
    return team.render(
        "developer_events",
        wrong=wrong,
        rows=found,
        filters={name: text for name, text in (("subscription", chosen), ("since", since)) if text},
        payloads={each.event.event_id: _pretty(each.event.payload) for each in found.items},
        subscriptions={str(each.id): each.url for each in subscriptions.items},
    )


@get(paths_of(f"{_EVENTS}/{{event_id:str}}"))
async def show_event(team: InTeam, event_id: str) -> PageResponse:
    """Show an event in the form that programs receive."""
    found = await team.api.get(get_event, event_id=path_id(event_id, "There is no such event."))
    subscriptions = await team.api.get(list_subscriptions, limit=_SUBSCRIPTIONS)
    return team.render(
        "developer_event",
        event=found.event,
        content=_pretty(found.event),
        attempts=found.delivery_attempts,
        subscriptions={str(each.id): each.url for each in subscriptions.items},
        receivers=[each for each in subscriptions.items if found.event.event_type in each.events],
    )


_PATH = "/developer/subscriptions"
_ONE = f"{_PATH}/{{subscription_id:str}}"
_PAGE = 20
_QUEUED = 100
_SECRET_BYTES = 32


@get(paths_of(f"{_PATH}/new"), opt=RECENT_AUTHENTICATION)
async def show_new_subscription(team: InTeam) -> PageResponse:
    """Show the form that creates a subscription, with a new secret."""
    return await _form(team, {"shared_secret": _new_secret()})


@post(paths_of(_PATH), opt=RECENT_AUTHENTICATION)
async def create_subscription(team: InTeam) -> PageResponse:
    """Create a subscription."""
    form = team.page.form
    if form.get("preset") in PRESETS:
        return await _form(team, form)
    try:
        made = await team.api.send(routes.create_subscription, body_of(NewSubscription, form), key=team.page.form_key)
    except InvalidInput as wrong:
        return await _form(team, form, wrong)
    return redirect(f"{team.path}/developer/subscriptions/{made.id}", done="subscription-created")


@get(paths_of(_ONE))
async def show_subscription(team: InTeam, subscription_id: str) -> PageResponse:
    """Show a subscription and the attempts to deliver to it, the newest first."""
    return await _show(team, subscription_id)


@post(paths_of(f"{_ONE}/{{step:str}}"), opt=RECENT_AUTHENTICATION)
@shown_again(_show, NotFound, unless="forbidden")
async def change_subscription(team: InTeam, subscription_id: str, step: str) -> PageResponse:
    """Change a subscription, or have events delivered to it again."""
    key = path_id(subscription_id, "There is no such subscription.")
    done = await _run_action(team, step, {"key": team.page.form_key, "subscription_id": key})
    if step == "delete":
        return redirect(f"{team.path}/developer", done=done)
    return redirect(f"{team.path}/developer/subscriptions/{subscription_id}", done=done)


async def _run_action(team: ApiTeam, step: str, names: dict[str, Any]) -> str:
    """Perform an action and return its result."""
    form, send = team.page.form, team.api.send
    match step:
        case "content":
            await send(routes.update_subscription, body_of(ChangedSubscription, form), **names)
        case "status" | "secret":
            name = "status" if step == "status" else "shared_secret"
            await send(routes.update_subscription, {name: form.get(name, "")}, **names)
        case "delete":
            await send(routes.delete_subscription, **names)
            return "subscription-deleted"
        case "resend":
            await send(routes.resend_event, {"event_id": form.get("event_id", "").strip()}, **names)
            return "delivery-queued"
        case "send-example":
            await send(routes.send_example_event, {"event_type": form.get("event_type") or None}, **names)
            return "delivery-queued"
        case "recover" | "replay-missing":
            operation = routes.recover_events if step == "recover" else routes.replay_missing_events
            since = instant_in_zone("since", form.get("since", ""), team.page.user.time_zone)
            found = await send(operation, {"since": since}, **names)
            return "delivery-queued" if found.count else "nothing-to-deliver"
        case _:
            raise NotFound("There is no such step.")
    return "saved"


async def _form(team: ApiTeam, given: dict[str, str], wrong: FormError = "") -> PageResponse:
    types = (await team.api.get(list_event_types)).items
    form = Form(NewSubscription, given)
    chosen = of_preset(given["preset"], types) if "preset" in given else ticked(given, "events")
    return team.render(
        "developer_subscription_new", wrong=wrong, groups=grouped(types), presets=PRESETS, form=form, chosen=chosen
    )


def _pretty(content: Any) -> str:  # noqa: ANN401 - what JSON can be made of
    return msgspec.json.format(msgspec.json.encode(content)).decode()


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
