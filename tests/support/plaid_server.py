"""A server with the API of Plaid, version 2020-09-14: paths, headers and shapes of its public documentation."""

import json
from contextlib import asynccontextmanager
from datetime import timedelta
from urllib.parse import urlsplit

from tests.support.events import answer, receiving

from billfold.accounts.counterparties.plaid import PlaidLinking

CLIENT_ID, SECRET = "5f0c canary client", "5f0c canary secret"
ACCESS = "access-production-canary-8671031fc0f6"
BALANCES = {"available": 100, "current": 110, "iso_currency_code": "USD", "limit": None}
CODES = {
    "INVALID_PUBLIC_TOKEN": "INVALID_INPUT",
    "INVALID_ACCESS_TOKEN": "INVALID_INPUT",
    "INVALID_ACCOUNT_ID": "INVALID_INPUT",
    "INVALID_API_KEYS": "INVALID_INPUT",
    "INVALID_FIELD": "INVALID_REQUEST",
    "PRODUCT_NOT_READY": "ITEM_ERROR",
    "ITEM_LOGIN_REQUIRED": "ITEM_ERROR",
    "NO_AUTH_ACCOUNTS": "ITEM_ERROR",
    "RATE_LIMIT": "RATE_LIMIT_EXCEEDED",
    "INTERNAL_SERVER_ERROR": "API_ERROR",
}


def account(account_id, status=None, *, subtype="checking", kind="depository", **more):
    """An account as `accounts` of /auth/get and /accounts/get has it."""
    names = {"name": "Plaid Checking", "official_name": None, "mask": "9606", "persistent_account_id": "8cf1"}
    fields = {"account_id": account_id, "balances": BALANCES, "type": kind, "subtype": subtype}
    return {**fields, **names, "verification_status": status, **more}


def refusal(code, status=400):
    """The bytes of an error."""
    error = {"error_type": CODES[code], "error_code": code, "error_message": f"{ACCESS} {SECRET}"}
    return json_answer({**error, "display_message": None, "request_id": "HNTDNrA8F1shFEW"}, status)


def json_answer(body, status=200):
    return answer(status, "content-type: application/json", body=json.dumps(body).encode())


class PlaidServer:
    """Answers for one Item. `accounts` are its; `instead` has what a path answers instead, once for each entry."""

    def __init__(self):
        self.accounts = {}
        self.without_numbers = set()
        self.numbers = {}
        self.item = {"item_id": "DWVAAPWq4RHGlEaNyGKR", "institution_id": "ins_117650", "error": None}
        self.exchanged = set()
        self.instead = {}
        self.url = ""
        self.requests = []

    def has(self, *accounts, numbers=True):
        """Give the Item these accounts, with their numbers or without."""
        for each in accounts:
            self.accounts[each["account_id"]] = each
            (self.without_numbers.discard if numbers else self.without_numbers.add)(each["account_id"])

    def paths(self):
        return [path for path, _, _ in self.requests]

    async def __call__(self, request):
        body = json.loads(request.body)
        self.requests.append((request.path, request.headers, body))
        if self.instead.get(request.path):
            said = self.instead[request.path].pop(0)
            return await said() if callable(said) else said
        credentials = {request.headers.get("plaid-client-id"), request.headers.get("plaid-secret")}
        if credentials != {CLIENT_ID, SECRET} or request.headers.get("plaid-version") != "2020-09-14":
            return refusal("INVALID_API_KEYS")
        return self._route(request.path, body)

    def _route(self, path, body):
        routes = {
            "/link/token/create": self._link_token,
            "/item/public_token/exchange": self._exchange,
            "/auth/get": self._auth,
            "/accounts/get": self._accounts,
            "/institutions/get_by_id": self._institution,
            "/institutions/get": lambda _: json_answer({"institutions": [], "total": 0, "request_id": "tbFyC"}),
        }
        return routes[path](body) if path in routes else refusal("INVALID_FIELD", 404)

    def _link_token(self, _):
        made = {"link_token": "link-production-af1a0311", "expiration": "2027-03-27T12:56:34.000Z"}
        return json_answer({**made, "request_id": "XQVgFigpGHXkb0b"})

    def _exchange(self, body):
        token = body["public_token"]
        if not token.startswith("public-production-") or token in self.exchanged:
            return refusal("INVALID_PUBLIC_TOKEN")
        self.exchanged.add(token)
        return json_answer({"access_token": ACCESS, "item_id": self.item["item_id"], "request_id": "Aim3b"})

    def _institution(self, body):
        found = {"institution_id": body["institution_id"], "name": "Royal Bank of Plaid", "routing_numbers": []}
        return json_answer({"institution": found, "request_id": "9VpnU"})

    def _accounts(self, body, numbers=None):
        ids = body["options"]["account_ids"]
        if body["access_token"] != ACCESS:
            return refusal("INVALID_ACCESS_TOKEN")
        if not self.accounts.keys() >= set(ids):
            return refusal("INVALID_ACCOUNT_ID")
        found = {"accounts": [self.accounts[each] for each in ids], "item": self.item, "request_id": "m8MDnv9okwxFNBV"}
        return json_answer(found | ({} if numbers is None else {"numbers": numbers}))

    def _auth(self, body):
        ids = body["options"]["account_ids"]
        if self.without_numbers & set(ids):
            return refusal("PRODUCT_NOT_READY")
        ach = [{"account_id": each, **self._number(each)} for each in ids]
        return self._accounts(body, {"ach": ach, "eft": [], "international": [], "bacs": []})

    def _number(self, account_id):
        usual = {"account": "9900009606", "routing": "011401533", "wire_routing": "021000021"}
        return {**usual, "is_tokenized_account_number": False, **self.numbers.get(account_id, {})}


@asynccontextmanager
async def plaid(*, deadline=timedelta(seconds=20)):
    """A server of one Item, and the provider that calls it."""
    server = PlaidServer()
    async with receiving(server) as receiver:
        address = urlsplit(receiver.url)
        server.url = f"http://127.0.0.1:{address.port}"
        provider = PlaidLinking(url=server.url, client_id=CLIENT_ID, secret=SECRET, deadline=deadline)
        yield server, provider
        await provider.aclose()
