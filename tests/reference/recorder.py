"""Plays one request per operation of an API and keeps what was sent and answered."""

import json
from contextlib import contextmanager
from uuid import UUID

from tests.support.whole_bank import SEED

from billfold.platform import ids

OPERATOR = UUID("00000000-0000-8000-8000-000000000001")
HIDDEN: dict[str, object] = {
    "token": "q7Zr...",
    "access_token": "q7Zr...",
    "expires": "2025-06-02T14:00:00+00:00",
    "root": "eyJh...",
    "resets_at": "2025-06-03T00:00:00Z",
}

_AT = "2025-06-02T13:00:00.000000Z"
_URL = "https://api.bank.example/downloads/0d1c2b3a-4f5e-8697-8877-665544332211?customer=...&expires=...&signature=..."
_PROVEN = {"leaf": '{"bill":"912797PT8","customer":"...","units":4096}', "at": 8192, "path": ["9b" * 32]}
ON_THE_WALL: dict[str, dict[str, object]] = {
    "DailyProof": {"salt": "9b" * 32, "customer": _PROVEN, "bills": [_PROVEN]},
    "AuthorizationRequest": {"content_hash": "9b" * 32},
    "Statement": {"pdf_download_url": _URL, "time_created": "2025-07-01T14:00:00Z"},
    "TradeConfirmation": {"url": _URL},
    "Subscription": {"time_created": _AT, "updated_at": _AT},
    "ServiceUserKey": {"time_created": "2025-06-02T13:00:00Z", "expires_at": "2025-06-03T13:00:00Z"},
    "CustomerNotification": {"created_at": _AT},
    "Card": {"last_four": "4242"},
    "CardDetail": dict.fromkeys(("encrypted_pan", "encrypted_cvv", "encrypted_expiration"), "mZ0X..."),
    "PublicKeys": {"set_pin": "-----BEGIN PUBLIC KEY-----\nMIIB...\n-----END PUBLIC KEY-----\n"},
    "ReportDownload": {
        "url": "https://api.billfold.example/downloads/5d4c3b2a-1f0e-4d9c-8b7a-697867564534?customer=...&signature=...",
        "expires_at": "2025-06-02T13:10:00Z",
        "proof": "billfold-proof eyJh...\n",
    },
    "SandboxFork": {"created_at": _AT, "size": 18_612_224},
    "SandboxTask": {"started_at": _AT, "ended_at": "2025-06-02T13:00:01.200000Z"},
    "Explained": {"as_of": _AT},
    "RequestLogEntry": {"trace_id": "9b" * 16, "timestamp": _AT, "duration_ms": 12},
    "CustomerAuditLogEntry": {"timestamp": _AT, "user_agent": "books/1.0"},
}
"""Fields of objects that live on the wall clock, or on chance."""
OF_CHANCE = {"CustomerNotification", "CustomerAuditLogEntry"}
"""Objects whose ids no command derives."""


def number(nth):
    """Return an id that repeats in every run."""
    return ids.derive(SEED, OPERATOR, nth)


class Recorder:
    """A desk whose every id repeats, and the notebook of what it asked and was told.

    `watch` is awaited with the recorder and (operation, method, path, body) before each call.
    """

    def __init__(self, desk, watch=None):
        self.desk, self.watch = desk, watch
        self.sent = 0
        self.notes = {}
        self._stand_ins = {}

    async def play(self, name, method, path, body=None, *, headers=None, **filters):
        """Send a request under the next key; note it under its operation's name, once."""
        if self.watch:
            await self.watch(self, name, method, path, body)
        self.sent += 1
        content = {} if body is None else body
        key = number(self.sent)
        raised = self._events if name.startswith("sandbox_") else None
        before = await raised() if raised else {}
        answer = await self.desk.send(method, path, content, key=key, filters=filters, headers=headers)
        assert answer.is_success or answer.is_redirect, (name, answer.text)
        if self.watch and method != "GET":
            await self.watch.repeat(self, name, call=(method, path, content), key=key, headers=headers, answer=answer)
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        note = {} if body is None or isinstance(body, bytes) else {"request": body}
        if is_json:
            note["response"] = self._masked(answer.json())
        if raised and (new := sorted(kind for kind, count in (await raised()).items() if count > before.get(kind, 0))):
            note["events"] = new
        self.notes.setdefault(name, note)
        return answer.json() if is_json else None

    async def _events(self):
        """Return how many events of each kind there are."""
        rows = await self.desk.bank.pool.fetch("SELECT kind, count(*) FROM event GROUP BY kind")
        return {row["kind"]: row["count"] for row in rows}

    async def get(self, name, path, **filters):
        return await self.play(name, "GET", path, **filters)

    async def post(self, name, path, body=None):
        return await self.play(name, "POST", path, body)

    async def patch(self, name, path, body):
        return await self.play(name, "PATCH", path, body)

    async def delete(self, name, path):
        return await self.play(name, "DELETE", path)

    @contextmanager
    def at(self, desk):
        """Play at another desk."""
        self.desk, before = desk, self.desk
        yield
        self.desk = before

    def name(self, *drawn, since=3000):
        """Let ids that chance made be written as ids that repeat."""
        for each in drawn:
            if each not in self._stand_ins:
                nth = sum(1 for _, base in self._stand_ins.values() if base == since)
                self._stand_ins[each] = number(since + nth), since

    @property
    def examples(self):
        """Return the notes with what repeats in the place of what does not."""
        text = json.dumps({name: note for name, note in self.notes.items() if name != "-"})
        for drawn, (kept, _) in self._stand_ins.items():
            text = text.replace(drawn, str(kept)).replace(UUID(drawn).hex, kept.hex)
        return json.loads(text)

    def _masked(self, told):
        """Mask values that depend on the wall clock or on chance."""
        if isinstance(told, list):
            return [self._masked(each) for each in told]
        if not isinstance(told, dict):
            return told
        kind = told.get("object_type")
        if kind in OF_CHANCE:
            self.name(told["id"], since=2100)
        # A limit has no type of its own, and those that count requests end with the day of the wall clock.
        counted = {"resets_at": "2025-06-03T00:00:00Z"} if told.get("unit") == "COUNT" else {}
        hidden = HIDDEN | ON_THE_WALL.get(str(kind), {}) | counted
        if told.get("label") == "Resets":  # a limit, which may be one of the wall clock
            hidden = hidden | {"value": _AT}
        if told.get("label") in {"Who did it", "Refusal"}:
            steps = [each | {"value": _AT} if each["unit"] == "INSTANT" else each for each in told["steps"]]
            told = told | {"steps": steps}
        return {
            name: hidden[name] if name in hidden and value is not None else self._masked(value)
            for name, value in told.items()
        }


def text_of(notes):
    """The examples as JSON, one operation a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(notes[name], sort_keys=True)}" for name in sorted(notes)]
    return "{\n" + ",\n".join(lines) + "\n}\n"
