"""Values of this sandbox for the samples of the documentation: ids that its APIs list, and its credentials.

The id after `/wires/` is that of the first wire which `GET /wires/` lists. They are shown on the machine of the sandbox
alone, as is the control room.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import msgspec

from billfold.cli.python_process import python_command
from billfold.documentation.operations import ApiOperation, Call, Content, call_of
from billfold.documentation.samples import Home, OwnCall
from billfold.platform import ids
from billfold.platform.telemetry.logs import logger
from billfold.sandbox.control_room.room import SignedCalls, is_on_this_machine
from billfold.sandbox.running_sandbox import FILE_NAME, SandboxFile, read_sandbox_file
from billfold_client.errors import ApiError

log = logger(__name__)

_LISTED_ELSEWHERE: Mapping[str, str] = {
    "cusip": "/api/v2/customers/{customer_id}/trades/ /api/v2/trades/",
    "member_id": "/api/v1/team/",
    "trade_id": "/api/v2/trades/",
}
"""Paths that list ids which are not listed at the path before them."""
_POCKETS = frozenset({"account_id", "pocket_id"})
_UUID = re.compile(r"[0-9a-f-]{36}")
_SECOND = "destination_"
_SERVICE_USERS, _TOLD_BY = "service-users", "is_service_user"
_OF_AN_ID = 2
"""Number of words in the name of an id: that of `origin_pocket_id` is a `pocket_id`."""


class _Limited(Exception):
    """Pages were read faster than the sandbox's callers may ask."""


class SampleValues:
    """The values of a sandbox, in place of those of an example."""

    def __init__(self, calls: SignedCalls) -> None:
        self._calls = calls

    async def __call__(self, operation: ApiOperation, client: str) -> OwnCall | None:
        """Return the call of an operation in this sandbox; None for readers elsewhere, and if it cannot be asked."""
        folder = self._calls.state_dir.absolute()
        box = read_sandbox_file(folder) if is_on_this_machine(client) else None
        if box is None:
            return None
        try:
            return await self._filled(operation, client, box, folder)
        except (ApiError, _Limited):
            return None
        except Exception:  # the page is of more use than its values
            log.exception("samples_not_filled_in", operation=operation.name)
            return None

    async def _filled(self, operation: ApiOperation, client: str, box: SandboxFile, folder: Path) -> OwnCall:
        look = _LookUp(self._calls, operation, box, client=client)
        variables = await look.path_values(operation.path)
        body = await look.body(operation.request_example) if operation.content is Content.JSON else None
        state, program = shlex.quote(str(folder)), shlex.join(python_command("-m", "billfold_client.sandbox"))
        shell = f'eval "$(BILLFOLD_STATE_DIR={state} {program})"'
        home = Home(shell, str(folder / FILE_NAME))
        call = call_of(operation, variables, body)
        return OwnCall(call, home, look.note or await self._refusal(call, client))

    async def _refusal(self, call: Call, client: str) -> str:
        """Return what a reader of this call is told who gets an error; nothing about calls that change something."""
        if call.operation.method != "GET" or call.is_stream:
            return ""
        answer = await _send(self._calls, call, client)
        return f"This sandbox answers {answer.status_code} to it: {_detail(answer.content)}" if answer.is_error else ""


class _LookUp:
    """The ids that one page needs."""

    def __init__(self, calls: SignedCalls, operation: ApiOperation, box: SandboxFile, *, client: str) -> None:
        self._calls, self._box, self._client = calls, box, client
        self._lists = {each.path: each for each in calls.operations(operation.api).values() if each.method == "GET"}
        self._missing: dict[str, None] = {}

    @property
    def note(self) -> str:
        """The note to a reader about values that this sandbox has none of."""
        names = ", ".join(self._missing)
        return f"This sandbox has nothing for {names} yet: the sample has the value of an example." if names else ""

    async def path_values(self, path: str) -> dict[str, str]:
        """Return the values of a path, as far as there are any."""
        found: dict[str, str] = {}
        for part in re.finditer(r"\{(\w+)\}", path):
            name = part[1]
            value = await self._known(name) or await self._listed(name, path[: part.start()], found)
            if value is not None:
                found[name] = value
            elif name.endswith("_id"):
                self._missing[name] = None
        return found

    async def body(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return a recorded body with the ids and credentials of another bank replaced by those of this one."""
        if isinstance(value, list):
            return [await self.body(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {name: await self._of_body(name, each) for name, each in value.items()}

    async def _of_body(self, name: str, value: Any) -> Any:  # noqa: ANN401 - as above
        own = {"username": self._box.username, "password": self._box.password}.get(name)
        if own or not (name.endswith("_id") and isinstance(value, str) and _UUID.fullmatch(value)):
            return own or await self.body(value)
        for wanted in (name, "_".join(name.split("_")[-_OF_AN_ID:])):
            known = await self._known(wanted, nth=int(name.startswith(_SECOND)))
            found = known or await self._listed_anywhere(wanted)
            if found:
                return found
        self._missing[name] = None
        return value

    async def _listed_anywhere(self, name: str) -> str | None:
        before = next((path.partition(f"{{{name}}}")[0] for path in self._lists if f"{{{name}}}" in path), None)
        return None if before is None else await self._listed(name, before, await self.path_values(before))

    async def _known(self, name: str, nth: int = 0) -> str | None:
        if name in _POCKETS:
            pockets = self._box.pocket_ids or await self._pockets()
            return str([*pockets, self._box.facilitation_pocket_id][nth])
        return str(self._box.customer_id) if name == "customer_id" else None

    async def _pockets(self) -> list[str]:
        """Return the Pockets of the customer of a sandbox that has not played its story."""
        listing = self._calls.find("customer", "list_pockets")
        return list(_values("pocket_id", [*_objects(await self._ask(listing, {}))]))

    async def _listed(self, name: str, before: str, known: Mapping[str, str]) -> str | None:
        """Return the first value that a list has, at the path before it or elsewhere."""
        paths = [before, *_LISTED_ELSEWHERE.get(name, "").split()]
        listing = next((self._lists[each] for each in paths if each in self._lists), None)
        if listing is None:
            return None
        known = {**known, "customer_id": str(self._box.customer_id)}
        if not known.keys() >= {each["name"] for each in listing.parameters_in("path")}:
            return None
        is_service_user = _SERVICE_USERS in before
        objects = _objects(await self._ask(listing, known))
        own = [each for each in objects if each.get(_TOLD_BY, is_service_user) is is_service_user]
        return next(_values(name, own), None)

    async def _ask(self, listing: ApiOperation, known: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
        answer = await _send(self._calls, call_of(listing, known), self._client)
        return msgspec.json.decode(answer.content) if answer.is_success else None


async def _send(calls: SignedCalls, call: Call, client: str) -> httpx.Response:
    answer = await calls.send(call, key=str(ids.new()), client=client)
    if answer.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        raise _Limited
    return answer


def _detail(content: bytes) -> str:
    """Return what the problem document of an error says."""
    try:
        return str(msgspec.json.decode(content)["detail"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return "an error."


def _values(name: str, objects: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what objects have by this name; then their ids."""
    for key in (name, "id"):
        yield from (str(each[key]) for each in objects if each.get(key))


def _objects(answer: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any JSON
    """Yield every object of a JSON document, the outer one first."""
    if isinstance(answer, dict):
        yield answer
    for each in answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else ():
        yield from _objects(each)
