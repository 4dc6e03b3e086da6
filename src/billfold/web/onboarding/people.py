"""The steps of the business and of related parties: shown, saved, added, removed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from litestar import get, post

from billfold.http.raw_request import decode
from billfold.onboarding.applications.content import Application, Content, content_of
from billfold.onboarding.applications.forms import BusinessForm, RelatedPartyForm
from billfold.onboarding.invites import invited
from billfold.onboarding.invites.invited import Draft, is_marked, mark_of, put_draft, unless_changed
from billfold.onboarding.invites.rules import InvitationType
from billfold.platform import ids
from billfold.platform.errors import FieldError, InvalidInput, NotFound, Refused
from billfold.web.onboarding.fields import (
    Field,
    Kind,
    Step,
    content_in,
    drop,
    field_of,
    names_of,
    shown_at,
    typed_in,
    values_of,
)
from billfold.web.onboarding.visit import Visit, visit_of
from billfold.web.page_context import PUBLIC, FormError, PageContext, PageResponse, path_id, redirect

Save = Callable[[Content], Awaitable[object]]
_SOME = "Valid fields are saved. Correct the marked fields now, or later."


class PersonStep(NamedTuple):
    """A step of the business, or of a person: its page, the next one, and the stored data."""

    step: Step
    party_id: UUID | None
    path: str
    """Below the pages of the invite; it also names the draft."""
    next_path: str


def find_place(steps: Sequence[Step], key: str, path: str, party_id: UUID | None = None) -> PersonStep:
    """Return one of these steps, whose pages are below `path`. Raises NotFound."""
    for number, each in enumerate(steps, 1):
        if each.key == key:
            next_path = f"{path}/{steps[number].key}" if number < len(steps) else ""
            return PersonStep(each, party_id, f"{path}/{key}", next_path)
    raise NotFound("There is no such page.")


class Outcome(NamedTuple):
    """The outcome of a form: the errors at its fields, and those that belong to no field."""

    field_errors: dict[str, str]
    problem: str = ""


async def show_step(visit: Visit, place: PersonStep) -> PageResponse:
    """Show a step as it is stored, with input that could not be stored.

    Values that somebody else has saved since are shown, with the visitor's input next to them.
    """
    draft, content = visit.drafts.get(place.path, Draft()), visit.content(place.party_id)
    values, fields = values_of(place.step.fields, content), place.step.fields
    if draft.values and not is_marked(visit.bank, draft.mark, _marked(place, content)):
        left = {each.label: "; ".join(words) for each in fields if (words := _words_in(draft.values, each))}
        return _page(visit, place, values=values, field_errors={}, left=left)
    typed = {name for each in fields if _field_values(draft.values, each) for name in names_of(each)}
    values = {name: text for name, text in values.items() if name not in typed}
    return _page(visit, place, values=values | draft.values, field_errors=draft.mistakes)


async def save_step(visit: Visit, place: PersonStep) -> PageResponse:
    """Save a step and continue; with errors it is shown again, or left for later when the person leaves."""
    form, fields = visit.page.form, place.step.fields
    content = content_in(fields, form, visit.content(place.party_id))
    try:
        outcome = await save_right(content, fields, lambda right: _save_step(visit, place, right))
    except Refused as refused:
        if refused.code == "application-not-editable":
            return redirect(visit.base)
        if refused.code != "content-changed":
            raise
        return await show_conflict(visit, place)
    stored = _content(await invited.read(visit.bank, visit.invite), place.party_id)
    await keep_rest(visit, place, outcome, stored)
    stays = form.get("go") == "stay"
    if outcome.problem or stays or (outcome.field_errors and form.get("go") != "overview"):
        wrong: FormError = outcome.problem or (_SOME if outcome.field_errors else "")
        return _page(
            visit, place, values=_typed(fields, form), field_errors=outcome.field_errors, wrong=wrong, stored=stored
        )
    return redirect(visit.base if form.get("go") == "overview" else f"{visit.base}/{place.next_path}", done="saved")


async def save_right(content: Content, fields: Sequence[Field], save: Save) -> Outcome:
    """Save the valid part of a body, and return the errors of the rest. Raises like `save`, except InvalidInput."""
    field_errors: dict[str, str] = {}
    while content:
        try:
            await save(content)
        except InvalidInput as wrong:
            dropped = [drop(content, error.loc) for error in wrong.errors]
            field_errors = _sentences(wrong.errors, fields) | field_errors
            if not any(dropped):
                return Outcome(field_errors, problem=_problem(wrong.errors, fields))
        else:
            break
    return Outcome(field_errors)


async def keep_rest(visit: Visit, place: PersonStep, outcome: Outcome, stored: Content) -> None:
    """Keep what was typed into the fields that are wrong next to what is stored; without errors nothing is kept."""
    tops = {each.partition(".")[0] for each in outcome.field_errors}
    typed = typed_in(place.step.fields, visit.page.form)
    left = {name: text for name, text in typed.items() if outcome.problem or name.partition(".")[0] in tops}
    draft = Draft(values=left, mistakes=outcome.field_errors, mark=mark_of(visit.bank, _marked(place, stored)))
    applicant_id = visit.view.row.applicant_id
    await put_draft(visit.bank, visit.invite, applicant_id, step=place.path, draft=draft)


async def _save_step(visit: Visit, place: PersonStep, content: Content) -> None:
    """Save a body like the APIs, unless the step has changed since it was shown."""
    check = unless_changed(
        visit.bank, visit.page.form.get("mark", ""), lambda found: _marked(place, _stored_in(found, place.party_id))
    )
    body = msgspec.json.encode(content)
    if place.party_id is None:
        await invited.save_business(visit.call, visit.bank, decode(body, BusinessForm), check=check)
    else:
        data = decode(body, RelatedPartyForm)
        await invited.save_party(visit.call, visit.bank, place.party_id, data, check=check)


def _stored_in(application: Application, party_id: UUID | None) -> Content:
    if party_id is None:
        return content_of(application.form)
    if party_id not in application.parties:
        raise NotFound("This person no longer exists.")
    return content_of(application.parties[party_id])


def _marked(place: PersonStep, content: Content) -> dict[str, Any]:
    """Return the version mark of a form of the step: its fields, as they are stored."""
    return {name: content[name] for name in sorted({each.top for each in place.step.fields}) if name in content}


def show_new(visit: Visit, place: PersonStep, outcome: Outcome) -> PageResponse:
    """Show the form of a new person; its key creates only one, however often it is sent."""
    wrong = outcome.problem or ("Correct the marked fields." if outcome.field_errors else "")
    key = visit.page.form.get("new_key") or str(ids.new())
    values = _typed(place.step.fields, visit.page.form)
    return _page(
        visit, place, values=values, field_errors=outcome.field_errors, stored={}, wrong=wrong, new_key=key, heading=""
    )


def _content(view: invited.InvitedView, party_id: UUID | None) -> Content:
    return content_of(view.form if party_id is None else view.parties[party_id])


async def show_conflict(visit: Visit, place: PersonStep) -> PageResponse:
    """Show the input next to the values that somebody else has saved in the meantime; sent again it replaces them."""
    fields, form = place.step.fields, visit.page.form
    stored = _content(await invited.read(visit.bank, visit.invite), place.party_id)
    typed, there = _typed(fields, form), values_of(fields, stored)
    theirs = {
        each.label: shown_at(each, stored) or "(empty)"
        for each in fields
        if _field_values(typed, each) != _field_values(there, each)
    }
    return _page(visit, place, values=typed, field_errors={}, theirs=theirs, status=409, stored=stored)


def _page(
    visit: Visit,
    place: PersonStep,
    *,
    values: Mapping[str, str],
    field_errors: Mapping[str, str],
    stored: Content | None = None,
    **facts: Any,
) -> PageResponse:
    content = visit.content(place.party_id) if stored is None else stored
    return visit.render(
        "onboarding_step",
        place=place,
        action=f"{visit.base}/{place.path}",
        values=values,
        field_errors=field_errors,
        saved={each.path: shown_at(each, content) for each in place.step.fields},
        mark=mark_of(visit.bank, _marked(place, content)),
        **({"theirs": {}, "left": {}, "new_key": "", "heading": _heading(visit, place)} | facts),
    )


def _heading(visit: Visit, place: PersonStep) -> str:
    party = visit.view.parties.get(place.party_id) if place.party_id else None
    return party.name.written if party and party.name else ""


def _typed(fields: Sequence[Field], form: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in typed_in(fields, form).items() if text}


def _sentences(errors: Sequence[FieldError], fields: Sequence[Field]) -> dict[str, str]:
    found: dict[str, str] = {}
    for error in errors:
        field = field_of(fields, error)
        if field is not None:
            wrong = "must be a number from 0 to 100" if field.kind == Kind.PERCENT else error.msg
            found.setdefault(field.path, f"{field.label} {wrong}.")
    return found


def _problem(errors: Sequence[FieldError], fields: Sequence[Field]) -> str:
    unplaced = [each for each in errors if field_of(fields, each) is None]
    named = [f"{' '.join(str(part) for part in each.loc[1:]).replace('_', ' ')} {each.msg}" for each in unplaced]
    return f"Not saved: {'; '.join(named)}." if named else "Not saved: correct the marked fields."


def _field_values(values: Mapping[str, str], field: Field) -> dict[str, str]:
    """Return the values of one field from a form: a list has a value for each of its options."""
    return {name: text for name, text in values.items() if name in names_of(field)}


def _words_in(values: Mapping[str, str], field: Field) -> list[str]:
    """Return the values of one field from a form, in words."""
    part = {name: text for name, text in _field_values(values, field).items() if text}
    if field.kind == Kind.MANY:
        return [field.options[name.rpartition(".")[2]] for name in part]
    return [field.options.get(text, text) for text in part.values()]


@get("/onboarding/{invite_id:str}/business/{step:str}", opt=PUBLIC)
async def show_business_step(invite_id: str, step: str, page: PageContext) -> PageResponse:
    """Show a step of the business."""
    visit = await visit_of(page, invite_id)
    return await show_step(visit, _business_place(visit, step)) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/business/{step:str}", opt=PUBLIC)
async def save_business_step(invite_id: str, step: str, page: PageContext) -> PageResponse:
    """Save a step of the business."""
    visit = await visit_of(page, invite_id)
    return await save_step(visit, _business_place(visit, step)) if isinstance(visit, Visit) else visit


def _business_place(visit: Visit, key: str) -> PersonStep:
    """Return a step of the business. Raises NotFound, also if the visitor is not invited to fill it in."""
    return find_place(visit.business_steps, key, "business")


@get("/onboarding/{invite_id:str}/people/new", opt=PUBLIC)
async def show_new_person(invite_id: str, page: PageContext) -> PageResponse:
    """Show the form that adds a person."""
    visit = await visit_of(page, invite_id)
    return show_new(visit, _new_person_step(visit), Outcome({})) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/people/new", opt=PUBLIC)
async def add_person(invite_id: str, page: PageContext) -> PageResponse:
    """Add a person by name; other errors are kept for later."""
    visit = await visit_of(page, invite_id)
    if not isinstance(visit, Visit):
        return visit
    place = _new_person_step(visit)
    content = content_in(place.step.fields, page.form, {})
    own_id = visit.call.new_resource_id(visit.bank.seed)
    if own_id in visit.view.parties:  # the form was sent before
        return await _continue_after_repeat(visit, own_id, content)
    added: list[UUID] = []

    async def add(right: Content) -> None:
        if right.get("name"):
            data = decode(msgspec.json.encode(right), RelatedPartyForm)
            added.append(await invited.add_party(visit.call, visit.bank, data))

    outcome = await save_right(content, place.step.fields, add)
    if not added:
        field_errors = {"name.first_name": "First name and last name are needed."} | outcome.field_errors
        return show_new(visit, place, Outcome(field_errors, outcome.problem))
    path = f"people/{added[0]}"
    stored = content_of((await invited.read(visit.bank, visit.invite)).parties[added[0]])
    await keep_rest(visit, place._replace(path=f"{path}/{place.step.key}"), outcome, stored)
    following = visit.base if page.form.get("go") == "overview" else f"{visit.base}/{path}/{visit.person_steps[1].key}"
    return redirect(f"{visit.base}/{path}/{place.step.key}" if outcome.field_errors else following, done="saved")


@get("/onboarding/{invite_id:str}/people/{party_id:str}/{step:str}", opt=PUBLIC)
async def show_person_step(invite_id: str, party_id: str, step: str, page: PageContext) -> PageResponse:
    """Show a step of a person."""
    visit = await visit_of(page, invite_id)
    return await show_step(visit, _person_step(visit, party_id, step)) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/people/{party_id:str}/{step:str}", opt=PUBLIC)
async def save_person_step(invite_id: str, party_id: str, step: str, page: PageContext) -> PageResponse:
    """Save a step of a person."""
    visit = await visit_of(page, invite_id)
    return await save_step(visit, _person_step(visit, party_id, step)) if isinstance(visit, Visit) else visit


@post("/onboarding/{invite_id:str}/people/{party_id:str}", opt=PUBLIC)
async def remove_person(invite_id: str, party_id: str, page: PageContext) -> PageResponse:
    """Remove a person."""
    visit = await visit_of(page, invite_id)
    if not isinstance(visit, Visit):
        return visit
    await invited.remove_party(visit.call, visit.bank, _known(visit, party_id))
    return redirect(visit.base, done="person-removed")


async def _continue_after_repeat(visit: Visit, party_id: UUID, content: Content) -> PageResponse:
    """Continue after a form that adds a person was sent twice; with different values it replaces nothing unseen."""
    place = _person_step(visit, str(party_id), visit.person_steps[0].key)
    fields = place.step.fields
    if values_of(fields, visit.content(party_id)) == values_of(fields, content):
        return redirect(f"{visit.base}/{place.next_path}")
    return await show_conflict(visit, place)


def _new_person_step(visit: Visit) -> PersonStep:
    """Return the step that adds a person. Raises NotFound if the visitor may not add one."""
    if visit.kind != InvitationType.COLLABORATOR:
        raise NotFound("There is no such page.")
    return PersonStep(visit.person_steps[0], None, "people/new", "")


def _person_step(visit: Visit, party_id: str, key: str) -> PersonStep:
    """Return a step of a person. Raises NotFound, also for a person other than the invited one."""
    if visit.kind == InvitationType.AUTHORIZED_PERSON:
        raise NotFound("There is no such page.")
    own_id = _known(visit, party_id)
    return find_place(visit.person_steps, key, f"people/{own_id}", own_id)


def _known(visit: Visit, party_id: str) -> UUID:
    own_id = path_id(party_id)
    if own_id not in visit.view.parties:
        raise NotFound("There is no such person.")
    return own_id
