"""The whole sandbox: it starts, refuses plain http, plays its story, repeats it, stops cleanly."""

import asyncio
import io
import json
import os
import re
import signal
import ssl
import stat
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import httpx
import psutil
import pytest
from rich.console import Console
from tests.support.card_network import connected
from tests.support.cards import client_key, decrypted, pem
from tests.support.import_traps import set_import_traps
from tests.support.sandbox_process import BOX, PROGRAM, SOURCE, START_SECONDS, Sandbox, free_ports, perform

from billfold.sandbox.running_sandbox import partner_http
from billfold.sandbox.scenarios import story as scenario_story
from billfold.sandbox.scenarios.story import RecordingClient, Story
from billfold_client.webhooks import verify_webhook

SEED = 7
SECRET = "a secret that the program knows"


def is_readable_by_others(path):
    """The database has folders and rights of its own, of the account that it runs as."""
    mode = path.lstat().st_mode
    return "postgres" not in path.parts and path.name != "said.txt" and bool(mode & 0o066)


@pytest.fixture(scope="module")
def sandbox(memory_folder):
    """A running sandbox that has not played its story, in a folder of import traps."""
    folder = memory_folder / "told"
    folder.mkdir()
    set_import_traps(folder, folder / "imported.txt")
    running = Sandbox(folder, "--seed", SEED, "--no-story")
    try:
        yield running.wait_up()
    finally:
        running.end()


@pytest.fixture(scope="module")
def recorded_story(sandbox):
    """The story played in this process, and its output."""
    console = Console(record=True, width=200, file=io.StringIO(), highlight=False)
    transcript = sandbox.state / "listened.jsonl"
    http = partner_http(sandbox.home())
    with RecordingClient(http, seed=seed_of(sandbox), transcript=transcript) as client:
        story = Story(client, console)
        story.play()
    return story, console.export_text()


def seed_of(_):
    return f"sandbox {SEED}".encode()


def answer(story, number):
    """Return the nth answer's body, read again from its text."""
    return json.loads(story.client.answers[number - 1].text)


def look_up(body, where):
    for part in where.split("."):
        body = body[int(part)] if isinstance(body, list) else body[part]
    return body


def trades_of(story):
    """Return every trade the story saw, Pocket by Pocket, oldest first."""
    newest_first = {each.path: each.body["items"] for each in story.client.answers if "/trades/" in each.path}
    return [trade for trades in newest_first.values() for trade in reversed(trades)]


def test_every_figure_of_the_story_is_in_its_api_response(recorded_story):
    story, printed = recorded_story
    assert len(story.figures) > 100
    for figure in story.figures:
        assert str(look_up(answer(story, figure.answer), figure.where)) == figure.shown
        assert figure.shown in printed


def test_every_amount_printed_by_the_story_comes_from_an_api_response(recorded_story):
    story, printed = recorded_story
    shown = {figure.shown for figure in story.figures}
    amounts = {word.strip(".,:") for word in printed.split() if word.startswith(("$", "-$"))}
    assert amounts
    assert amounts <= shown


def test_the_first_price_of_the_story_can_be_recomputed_by_hand(recorded_story):
    story, _ = recorded_story
    first = trades_of(story)[0]
    assert (first["activity"], first["cusip"]) == ("BUY", "912797PT8")
    # Published for 2025-06-02, 4 weeks: 4.22 %. One tick less to buy; settles on 06-03, 21 days
    # before the bill pays on 06-24. P = 100 * (1 - 21 * 0.04215 / 360)
    assert first["price"] == f"{100 * (1 - 21 * 0.04215 / 360):.6f}" == "99.754125"
    assert first["quantity"] == 2506  # 250,000.00 / 99.754125, whole bills
    assert first["notional"]["formatted"] == "$249,983.84"


def test_the_story_invests_the_deposit_down_to_less_than_one_bill(recorded_story):
    story, _ = recorded_story
    bought = trades_of(story)[0]
    price = round(float(bought["price"]) * 100)
    left = scenario_story.DEPOSIT_CENTS - bought["notional"]["value"]
    assert 0 <= left < price + 1


def test_sandbox_json_is_readable_only_by_its_owner_and_its_credentials_work(sandbox):
    path = sandbox.state / "sandbox.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    home = sandbox.home()
    body = {"username": home.username, "password": home.password}
    context = ssl.create_default_context(cafile=home.ca_file)
    answer = httpx.post(f"{home.base_url}/api/v1/login/", json=body, verify=context)
    assert answer.status_code == 200
    assert answer.json()["token"]


def test_a_card_network_authorizes_a_payment_in_iso_8583(sandbox):
    home = sandbox.home()
    with partner_http(home) as http:

        def call(method, path, body=None):
            key = {} if method == "GET" else {"x-service-idempotency": str(uuid4())}
            return http.request(method, path, json=body, headers=key).raise_for_status().json()

        opened = {"pocket_name": "Cards", "deposit_strategy_id": "UST-4W"}
        pocket = call("POST", f"/api/v2/customers/{home.customer_id}/pockets/", opened)["id"]
        portal = call("GET", f"/api/v2/pockets/{pocket}/portals/")["items"][0]["id"]
        wire = {"portal_id": portal, "amount_usdc": 100_00, "sender_name": "Ada Marsh"}
        http.post("/api/v1/sandbox/wire/", json=wire, headers={"x-service-idempotency": str(uuid4())})
        body = {"public_key": pem(client_key().public_key())}
        pan, _, _ = decrypted(call("POST", f"/api/v1/service-accounts/{pocket}/virtual-cards/", body))
        codes = asyncio.run(pay_and_reverse(home.card_network.port, pan))
        (held,) = call("GET", f"/api/v2/pockets/{pocket}/transactions/?type[]=CARD")["items"]
    assert codes == ["00", "00", "51", "00"]
    assert (held["amount"]["value"], held["status"]) == (20_00, "BOOKED")
    assert held["issue_id"].startswith("123456-")  # the acquirer's number and that of the purchase
    assert stat.S_IMODE((sandbox.state / "card_processor" / "host.json").stat().st_mode) == 0o600
    process = next(each for each in psutil.process_iter(["cmdline"]) if is_card_host(each, sandbox))
    assert not [name for name in process.environ() if name.startswith("BILLFOLD_")]  # nothing of the bank's


async def pay_and_reverse(port, pan):
    """Return the codes of an echo, of a purchase, of one that the Pocket cannot pay, and of a partial reversal."""
    async with connected(port, pan) as switch:
        bought = switch.purchase(30_00)
        less = switch.purchase(30_00, de37=bought[37], de95=f"{20_00:012}".ljust(42, "0"))
        return [
            await switch.code("0800", {7: "0602130501", 11: "000001", 70: "301"}),
            await switch.code("0100", bought),
            await switch.code("0100", switch.purchase(90_00)),
            await switch.code("0420", less),
        ]


def is_card_host(process, sandbox):
    words = process.info["cmdline"] or []
    return "billfold.sandbox.card_processor.host.server" in words and process.cwd() == str(sandbox.state.parent)


def test_sandbox_processes_never_import_from_the_working_directory(recorded_story, sandbox):
    imported = sandbox.state.parent / "imported.txt"
    assert not imported.exists(), imported.read_text()


def test_the_sandbox_refuses_plain_http(sandbox):
    home = sandbox.home()
    for url in (f"{home.http_url}/api/v1/login/", home.http_url):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(url)
        assert refusal.value.code == 403
        assert json.loads(refusal.value.read())["code"] == "https-required"


def test_a_second_sandbox_reports_that_the_port_is_in_use(sandbox):
    done = subprocess.run(
        [PROGRAM, "sandbox", "--port", str(sandbox.port)],
        cwd=sandbox.state.parent,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"Port {sandbox.port}" in done.stderr


def test_a_second_sandbox_in_one_folder_or_with_one_port_for_both_is_refused(sandbox):
    one, two = free_ports(2)
    for http_port, expected in ((two, "A sandbox already runs in"), (one, "--http-port")):
        with sandbox.run("sandbox", "--port", one, "--http-port", http_port) as second:
            assert second.wait(START_SECONDS) == 1
            assert expected in second.stderr.read()
    assert sandbox.home().base_url.endswith(f":{sandbox.port}")


def test_listen_forwards_triggered_events_with_a_signature(sandbox):
    got: list[object] = []

    class Program(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append(verify_webhook(body, dict(self.headers), shared_secret=SECRET).event_type)
            self.send_response(204)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Program)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kinds = ["transfers.wire.in.success", "trades.maturity"]
    with sandbox.run(
        "listen", "--forward-to", server.server_port, "--secret", SECRET, "--count", 2, "--api", "customer"
    ) as listening:
        assert SECRET in [listening.stdout.readline() for _ in range(3)][2]
        for kind in kinds:
            with sandbox.run("trigger", kind) as told:
                assert told.wait(START_SECONDS) == 0, told.stderr.read()
        assert listening.wait(START_SECONDS) == 0
        shown = listening.stdout.read()
    server.shutdown()
    server.server_close()
    assert got == kinds
    assert all(re.search(rf"E[DS]T  {kind}", shown) for kind in kinds)
    assert shown.count("204 No Content") == 2


def test_a_killed_sandbox_server_is_restarted(sandbox):
    home = sandbox.home()
    context = ssl.create_default_context(cafile=home.ca_file)
    supervisor = psutil.Process(sandbox.process.pid)
    (main,) = [each for each in supervisor.children() if "run-https" in each.cmdline()]
    orphans = main.children()
    assert orphans
    main.kill()
    deadline = time.monotonic() + 60
    responses = False
    while not responses or any(each.is_running() for each in orphans):
        assert time.monotonic() < deadline
        time.sleep(0.2)
        try:
            responses = httpx.get(f"{home.base_url}/health", verify=context).is_success
        except httpx.TransportError:
            responses = False


@pytest.fixture(scope="module")
def finished_sandbox(memory_folder):
    """A sandbox that has played its story and ended."""
    folder = memory_folder / "played"
    folder.mkdir()
    first = Sandbox(folder, "--seed", SEED, "--exit-after-story")
    assert first.process.wait(120) == 0, first.said.read_text()
    return first, first.said.read_text()


def test_the_story_is_byte_equal_for_the_same_seed(recorded_story, sandbox, finished_sandbox):
    story, _ = recorded_story
    again, said = finished_sandbox
    first = (sandbox.state / "listened.jsonl").read_bytes()
    second = (again.state / "story.jsonl").read_bytes()
    assert first == second
    assert all(figure.shown in said for figure in story.figures)
    assert "a simulated dealer, over FIX 4.4" in said


def test_a_story_starting_on_a_holiday_begins_when_the_bank_opens(recorded_story, sandbox):
    console = Console(record=True, width=200, file=io.StringIO(), highlight=False)
    http = partner_http(sandbox.home())
    with RecordingClient(http, seed=b"independence", transcript=sandbox.state / "holiday.jsonl") as client:
        client.post(f"{BOX}/clock/advance/", {"until": "2025-07-04T16:00:00Z"})
        Story(client, console).play()
    printed = console.export_text()
    assert printed.index("business date 2025-07-07") < printed.index("A wire from")
    assert "MATURITY" in printed
    assert printed.count("sweeps included, come to zero") == 2


@pytest.fixture(scope="module")
def restarted_sandbox(finished_sandbox):
    """The same sandbox, started again."""
    first, _ = finished_sandbox
    running = Sandbox(first.state.parent)
    try:
        yield running.wait_up()
    finally:
        running.end()


def test_a_second_sandbox_start_keeps_the_data_and_does_not_repeat_the_story(finished_sandbox, restarted_sandbox):
    first, _ = finished_sandbox
    kept = restarted_sandbox.home()
    assert (kept.story, len(kept.pocket_ids)) == ("played", 2)
    for words in (("doctor",), ("openapi", "customer")):  # the port that it was started with, not the usual one
        with restarted_sandbox.run(*words) as answered:
            assert f"{restarted_sandbox.port}" in answered.stdout.read()
    assert {path for path in first.state.parent.rglob("*") if is_readable_by_others(path)} == set()
    assert not any(word in restarted_sandbox.said.read_text() for word in ("Portfolio", "[info"))
    assert len((restarted_sandbox.state / "story.jsonl").read_text().splitlines()) > 20
    with RecordingClient(partner_http(kept), seed=b"another") as client:
        assert client.get("/api/v1/sandbox/clock/").at("now") == "2025-06-24T13:00:00.000000Z"


def test_rewinding_to_a_fork_discards_all_later_changes(restarted_sandbox):
    home = restarted_sandbox.home()
    context = ssl.create_default_context(cafile=home.ca_file)

    def log_in():
        body = {"username": home.username, "password": home.password}
        return httpx.post(f"{home.base_url}/api/v1/login/", json=body, verify=context).json()["token"]

    def status(token):
        bearer = {"authorization": f"Bearer {token}"}
        return httpx.get(f"{home.base_url}{BOX}/clock/", headers=bearer, verify=context).status_code

    with partner_http(home) as http:
        paths = [f"{BOX}/clock/", *(f"/api/v2/pockets/{each}/" for each in home.pocket_ids)]
        seen = [http.get(path).json() for path in paths]
        earlier = log_in()
        perform(http, "forks/", {"name": "before"})
        later = log_in()
        for scenario in ("payday", "bad-week", "card-month"):
            perform(http, f"scenarios/{scenario}/play/")
        assert [http.get(path).json() for path in paths] != seen
        with restarted_sandbox.run("reconcile") as reconciled, restarted_sandbox.run("reconcile", "breaks") as listed:
            assert "RESERVE-1" in reconciled.stdout.read()
            assert "No break is open." in listed.stdout.read(), "its statements are of the same days as its ledger"
        perform(http, "forks/before/rewind/")
        assert [http.get(path).json() for path in paths] == seen
        assert [status(earlier), status(later)] == [200, 401]


def test_a_sandbox_killed_during_a_rewind_restarts_intact(restarted_sandbox):
    home = restarted_sandbox.home()
    with partner_http(home) as http:
        later = http.post(f"{BOX}/clock/advance/", json={"seconds": 86_400}).raise_for_status().json()["now"]
        assert http.post(f"{BOX}/reset/").status_code == 202
        while not (restarted_sandbox.state / "bank.paused").exists():
            time.sleep(0.01)
        restarted_sandbox.end(signal.SIGKILL)
    third = Sandbox(restarted_sandbox.state.parent).wait_up()
    with partner_http(third.home()) as http:
        now = http.get(f"{BOX}/clock/").json()["now"]
        assert now in {"2025-06-24T13:00:00.000000Z", later}
        assert http.get(f"{BOX}/forks/").json()["items"][0]["name"] == "opening"
    assert third.end(signal.SIGTERM) == 0
    assert not any(
        str(third.state) in " ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])
    )
