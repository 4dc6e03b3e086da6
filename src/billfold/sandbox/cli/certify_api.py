"""The checks of `billfold certify api`: a client of the Partner API meets faults, and its requests are judged."""

import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import date, datetime, time, timedelta
from itertools import count, pairwise
from time import sleep
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import msgspec

from billfold.platform import ids
from billfold.platform.dates import ET, et_date
from billfold.sandbox.control.faults import FaultKind
from billfold_client.partner import ObservedRequest, PartnerApi, RotatedCredentials

EVERY_REQUEST = 1_000
_ARRIVALS, _PAUSE_SECONDS, _TOLERANCE_SECONDS = 2, 0.05, 0.05
_DAYS_TO_SETTLE, _ATTEMPTS_IN_VAIN, _MARGIN = 6, 2, timedelta(seconds=30)
_UNTIL_KNOWN_SECONDS = 1.2
"""Processes of the bank keep a partner's secrets for a second."""
_ACCOUNT = {"routing_number": "021000021", "account_number": "000123456789"}


class Finding(msgspec.Struct, frozen=True):
    """The outcome of a check; `answer` is what a system answered, or did wrong."""

    tried: str
    expected: str
    answer: str
    passed: bool


class Answer(NamedTuple):
    """The answer of a client to a task: whether it is done, and the words of its output."""

    done: bool
    words: list[str]


Drive = Callable[[dict[str, Any]], Answer]
"""Gives a task to a client, and returns when it is done or has failed."""


def driver_of(target: str, seconds: float) -> Drive:
    """Return what gives tasks as JSON to a URL by POST, or to a command by its standard input."""

    def call(task: dict[str, Any]) -> Answer:
        try:
            response = httpx.post(target, json=task, timeout=seconds)
        except httpx.HTTPError:
            return Answer(done=False, words=[])
        return Answer(response.is_success, response.text.split())

    def run(task: dict[str, Any]) -> Answer:
        words, sent = shlex.split(target), msgspec.json.encode(task)
        try:
            ended = subprocess.run(words, input=sent, stdout=subprocess.PIPE, timeout=seconds, check=False)  # noqa: S603 - the caller's own command
        except (OSError, subprocess.TimeoutExpired):
            return Answer(done=False, words=[])
        return Answer(ended.returncode == 0, ended.stdout.decode(errors="replace").split())

    return call if target.startswith(("http://", "https://")) else run


class Renewal(NamedTuple):
    """Takes new credentials: `adopt` for the judge itself, `publish` for all who use the sandbox."""

    adopt: Callable[[RotatedCredentials], None]
    publish: Callable[[RotatedCredentials], None]


class Fault(NamedTuple):
    """A fault that a payment meets once, whether it must be sent again, and after how many seconds at least."""

    tried: str
    kind: FaultKind
    sent_again: bool = True
    seconds: int = 0
    times: int = 1


PAYMENTS = (
    Fault("the answer is lost after the payment (500)", FaultKind.ANSWER_LOST),
    Fault("the connection is cut after the payment", FaultKind.CONNECTION_DROPPED),
    Fault("too many requests (429, Retry-After: 1)", FaultKind.RATE_LIMITED, seconds=1),
    Fault("an outage (503, Retry-After: 1)", FaultKind.UNAVAILABLE, seconds=1),
    Fault("the answer takes a second", FaultKind.SLOW, sent_again=False, seconds=1),
    Fault("fields that are new in the answer", FaultKind.NEW_FIELDS, sent_again=False),
)


TOKEN_ENDS_TWICE = tuple({"fault": FaultKind.TOKEN_EXPIRED, "skip": skip} for skip in (1, 3))


class Certification:
    """Drives a client of the Partner API through all checks. It moves the clock of the sandbox."""

    pays, lists = "create_on_us_transfer", "list_pocket_transactions"
    """The operations that the client is asked to use."""
    _rotated: Mapping[str, str] = {}

    def __init__(self, api: PartnerApi, drive: Drive, renewal: Renewal) -> None:
        self._api, self._drive, self._renewal = api, drive, renewal
        self._cents = count(1_01)
        self._customer = self._payer()
        payee = api.sandbox_customer(name="Payee").id
        pays, gets = (
            api.create_pocket(each, pocket_name="A", deposit_strategy_id="UST-4W").id
            for each in (self._customer, payee)
        )
        address = next(iter(api.list_portals(gets))).network_address
        counterparty = {"type": "on_us", "account_number": address, "counterparty_name": _business("Payee")}
        self._pocket = str(pays)
        self._payee = str(api.create_counterparty(self._customer, counterparty).id)  # type: ignore[arg-type] # an on-us one
        self._portal = next(iter(api.list_portals(pays))).id
        api.sandbox_wire(portal_id=self._portal, amount_usdc=10_000_00, sender_name="Contoso")

    def run(self) -> list[Finding]:
        """Return the findings of all checks."""
        short = {"fault": FaultKind.SHORT_PAGES, "times": EVERY_REQUEST}
        return [
            *(self.pay(each) for each in PAYMENTS),
            self.pay_in_vain("a refusal that stays (404)", pocket_id=str(ids.new())),
            *self.rotate(),
            self.list_rows(
                "new fields and a new type in a list", {"fault": FaultKind.NEW_FIELDS, "times": EVERY_REQUEST}
            ),
            self.list_rows("pages while rows arrive", short),
            self.list_rows("the access token ends between pages (401), twice", short, *TOKEN_ENDS_TWICE),
            *self._own_checks(),
            self.list_day(),
        ]

    def _payer(self) -> UUID:
        return self._api.sandbox_customer(name="Certification").id

    def _own_checks(self) -> list[Finding]:
        return [self.return_after_settlement()]

    def _count_paid(self, cents: int) -> int:
        """Return how many payments of an amount were made."""
        found = self._api.list_on_us_transfers(
            pocket_id=self._pocket, amount_from=cents, amount_to=cents, status=["COMPLETED"]
        )
        return len(list(found))

    def _rows(self) -> Iterable[Any]:
        return self._api.list_pocket_transactions(self._pocket, limit=100)

    def pay(self, fault: Fault) -> Finding:
        """Let the client pay, and judge its requests."""
        cents = next(self._cents)
        met = {"fault": fault.kind, "seconds": fault.seconds, "times": fault.times}
        answer, requests = self._meet(self._payment(cents), self.pays, met)
        wrong = payment_mistakes(
            requests, self.pays, done=answer.done, paid=self._count_paid(cents), pause=fault.seconds
        )
        wrong += ["It did not send the request again."] if fault.sent_again and len(requests) == 1 else []
        return finding(fault.tried, "pays once, under one key", wrong)

    def pay_in_vain(self, tried: str, **changed: str) -> Finding:
        """Let the client pay, which the bank refuses; once more is forgiven, as it may have read its secret again."""
        cents = next(self._cents)
        answer, requests = self._meet(self._payment(cents) | changed, self.pays, {"fault": FaultKind.NONE})
        wrong = [f"It sent {len(requests)} requests."] if len(requests) > _ATTEMPTS_IN_VAIN else []
        wrong += ["It took the payment for done."] if answer.done else []
        wrong += ["It paid."] if self._count_paid(cents) else []
        return finding(tried, "fails, and does not repeat it", wrong)

    def rotate(self) -> list[Finding]:
        """Let the client pay with its old secret or key while it is valid and when it has ended, and with a new one."""
        self._renewal.adopt(self._api.sandbox_rotate_credentials(**self._rotated))
        found = [self.pay(Fault("a new secret or key, the old one still valid", FaultKind.NONE, sent_again=False))]
        renewed = self._api.sandbox_rotate_credentials(**self._rotated)
        try:
            self._renewal.adopt(renewed)
            sleep(_UNTIL_KNOWN_SECONDS)
            found.append(self.pay_in_vain("the old secret or key has ended (401)"))
        finally:
            self._renewal.publish(renewed)
        given = {name: text for name, text in msgspec.to_builtins(renewed).items() if text is not None}
        self._drive(given | {"do": "credentials"})
        return [*found, self.pay(Fault("the new secret or key", FaultKind.NONE, sent_again=False))]

    def list_rows(self, tried: str, *faults: dict[str, Any], day: date | None = None) -> Finding:
        """Let the client read all rows of a Pocket while others arrive, or those of a day."""
        due = [str(each.id) for each in self._rows() if day in {None, et_date(each.time_booked)}]
        task = {"do": "list", "pocket_id": self._pocket} | ({} if day is None else {"day": day.isoformat()})
        answer, requests = self._meet(task, self.lists, *faults, arriving=day is None)
        wrong = listing_mistakes(answer, due, is_whole=day is not None) + refusals(requests)
        return finding(tried, "reads every row once", wrong)

    def return_after_settlement(self) -> Finding:
        """Let an ACH debit be returned after it was settled, and ask the client about it before and after."""
        api, sender = self._api, {f"sender_{name}": value for name, value in _ACCOUNT.items()}
        account = {"type": "ach", "counterparty_name": _business("Contoso"), "account_type": "CHECKING", **_ACCOUNT}
        payer = api.create_counterparty(self._customer, account | {"verification": {"type": "incoming_wire"}})  # type: ignore[arg-type] # an ACH one
        api.sandbox_wire(portal_id=self._portal, amount_usdc=1_00, sender_name="Contoso", **sender)
        sent = api.create_ach_origination(self._pocket, counterparty_id=payer.id, direction="DEBIT", amount_usdc=12_34)
        api.sandbox_ach_submit()
        for _ in range(_DAYS_TO_SETTLE):
            api.sandbox_clock_advance(business_days=1)
        task = {"do": "ach-status", "pocket_id": self._pocket, "transfer_id": str(sent.id)}
        said = self._drive(task).words
        api.sandbox_ach_move(sent.id, move="return", code="R10")
        said += self._drive(task).words
        wrong = [] if said == ["PROCESSED", "FAILED"] else [f"It said {', then '.join(said) or 'nothing'}."]
        return finding("an ACH debit returned after settlement", "says PROCESSED, then FAILED", wrong)

    def list_day(self) -> Finding:
        """Let the client read a day of 23 or 25 hours, with payments next to both of its midnights."""
        day = next_clock_change(datetime.fromisoformat(self._api.sandbox_clock().now))
        for at in (_midnight(day), _midnight(day + timedelta(days=1))):
            for margin in (-_MARGIN, _MARGIN):
                self._api.sandbox_clock_set(now=at + margin)
                self._move()
        return self.list_rows(f"the day of a clock change ({day})", {"fault": FaultKind.NONE}, day=day)

    def _payment(self, cents: int) -> dict[str, Any]:
        return {"do": "pay", "pocket_id": self._pocket, "counterparty_id": self._payee, "amount_cents": cents}

    def _move(self) -> None:
        self._api.create_on_us_transfer(
            type="PEER_TO_PEER",
            from_account={"id": self._pocket},
            counterparty_id=self._payee,
            amount={"type": "REQUESTED_AMOUNT", "amount_usdc": 1},
        )

    def _meet(
        self, task: dict[str, Any], target: str, *faults: dict[str, Any], arriving: bool = False
    ) -> tuple[Answer, Sequence[ObservedRequest]]:
        """Give the client a task whose requests meet faults; return its answer and those requests."""
        for each in faults:
            self._api.sandbox_fault(target=target, **each)
        try:
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(self._drive, task)
                for page in range(_ARRIVALS if arriving else 0):
                    while not wait([answer], _PAUSE_SECONDS).done and len(self._requests()) <= page:
                        pass
                    self._move()
            return answer.result(), self._requests()
        finally:
            self._api.sandbox_clear_faults()

    def _requests(self) -> Sequence[ObservedRequest]:
        return self._api.sandbox_faults().items[0].requests


def payment_mistakes(requests: Sequence[ObservedRequest], pays: str, *, done: bool, paid: int, pause: int) -> list[str]:
    """Return what is wrong with the requests of one payment, between which there must be a `pause`."""
    keys = {each.idempotency_key for each in requests}
    pauses = [(later.received_at - sooner.answered_at).total_seconds() for sooner, later in pairwise(requests)]
    shortest = max(0, min(pauses, default=pause))
    mistakes = {
        f"It sent no request of {pays}.": not requests,
        f"It paid {paid} times.": paid > 1,
        f"It used {len(keys)} idempotency keys for one payment; a retry has the first key.": len(keys) > 1,
        f"It sent again after {shortest:.1f} s; Retry-After was {pause} s.": shortest < pause - _TOLERANCE_SECONDS,
        "It did not pay.": not paid,
        "It reported a failure of a payment that was made.": paid and not done,
    }
    return [text for text, is_so in mistakes.items() if is_so] + refusals(requests)


def listing_mistakes(answer: Answer, due: Sequence[str], *, is_whole: bool) -> list[str]:
    """Return what is wrong with a list that has all rows that are `due`, and no others if that `is_whole`."""
    read, rows = answer.words, set(answer.words)
    mistakes = {
        f"It missed {len(set(due) - rows)} of {len(due)} rows.": set(due) - rows,
        f"It read {len(read) - len(rows)} rows twice.": len(read) > len(rows),
        f"It read {len(rows - set(due))} rows of other days.": is_whole and rows - set(due),
        "It reported a failure.": not answer.done,
    }
    return [text for text, is_so in mistakes.items() if is_so]


def next_clock_change(now: datetime) -> date:
    """Return the next day in New York that has not 24 hours, at least a day away."""
    day = et_date(now) + timedelta(days=2)
    while _midnight(day).utcoffset() == _midnight(day + timedelta(days=1)).utcoffset():
        day += timedelta(days=1)
    return day


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), ET)


def refusals(requests: Sequence[ObservedRequest]) -> list[str]:
    """Return what is wrong if the bank refused a request for more than a fault."""
    refused = [each for each in requests if not each.faults and each.status_code in {401, 403}]
    return [f"{len(refused)} requests were refused for their token or signature."] if refused else []


def _business(name: str) -> dict[str, str]:
    return {"type": "business", "business_name": name}


def finding(tried: str, expected: str, wrong: Sequence[str]) -> Finding:
    """Return the outcome of a check in which this was wrong."""
    return Finding(tried, expected, " ".join(wrong) or "as it must be", passed=not wrong)
