"""The examples, run as their readers run them, against a running sandbox."""

import hmac
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import Any

import httpx
import jwt
import msgspec
import psutil
import pyotp
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from tests.sandbox.test_cli import SOURCE, Sandbox
from tests.support.browser import forms_of
from tests.support.process_memory import memory_of, traces, written

from billfold.client.oauth import Authorization, ClientRegistration
from billfold.client.sandbox import local_client

EXAMPLES = SOURCE.parent / "examples"
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    """A running sandbox whose story has not been told."""
    running = Sandbox(tmp_path_factory.mktemp("examples"), "--seed", "7", "--no-story")
    try:
        yield running.wait_up()
    finally:
        running.end()


def printed(sandbox, name):
    """Return what an example prints in the folder of the sandbox."""
    with running(sandbox, name) as process:
        return end_of(process)


@contextmanager
def running(sandbox, name, *options):
    """Run an example in the folder of the sandbox."""
    with subprocess.Popen(
        [sys.executable, "-u", str(EXAMPLES / name), *options],
        cwd=sandbox.state.parent,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def end_of(process):
    """Return what else an example prints; it must come to a good end."""
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    assert err == ""
    return out


class Person:
    """Somebody with a browser, who signs in and agrees to whatever is asked."""

    def __init__(self, http, box):
        self.http, self.box, self.person = http, box, box["person"]

    def agree(self, address):
        """Open the address of a program; return where the last page leads."""
        self.open(address)
        sign_in = {each: self.person[each] for each in ("email", "password")}
        self.open(self.send("/sign-in", **sign_in))
        code = pyotp.TOTP(self.person["totp_secret"]).now()
        self.open(self.send("/second-factor", code=code))
        return self.send("/consent", decision="grant")

    def open(self, address):
        """Go to a page, wherever it leads."""
        page = self.http.get(address)
        while page.is_redirect:
            page = self.http.get(page.headers["location"])
        assert page.status_code == 200, page.text
        self.text = page.text

    def send(self, action, **fields):
        """Send the form of the page; return where it leads."""
        form = {**forms_of(self.text)[action], **fields}
        page = self.http.post(action, data=form, headers={"origin": self.box["auth_url"]})
        assert page.status_code == 303, page.text
        return page.headers["location"]


def test_a_partner_opens_a_pocket_and_money_becomes_bills(sandbox):
    told = printed(sandbox, "partner.py")
    assert "Holds 100 units of US T-Bill" in told
    assert "Worth $9,99" in told


def test_no_process_of_the_bank_knows_a_card_number_or_can_decrypt_one(sandbox):
    told = printed(sandbox, "cards.py")
    assert "CARD BOOKED: $42.50" in told
    assert "Physical card ONLINE, magnetic stripe ON" in told
    (number,) = re.findall(r"Virtual card (\d{16}),", told)
    store = sandbox.state / "card_processor"
    key: Any = load_pem_private_key((store / "set_pin.pem").read_bytes(), None)
    prime = key.private_numbers().p
    secrets = {
        "number": written(number.encode()),
        "key of CVVs": written(hmac.digest((store / "card.key").read_bytes(), b"billfold.card.cvv", "sha256")),
        "key of PINs": written(prime.to_bytes(128, "big")) | {prime.to_bytes(128, "little")},
    }
    processes = [sandbox.process, *psutil.Process(sandbox.process.pid).children(recursive=True)]
    apart = {each.pid for each in processes[1:] if "billfold.sandbox.card_processor" in " ".join(each.cmdline())}
    found = set().union(*(traces(memory_of(pid), secrets) for pid in apart))
    assert {"key of CVVs", "key of PINs"} <= found, "what is looked for can be found where it is"
    bank = [each.pid for each in processes if each.pid not in apart]
    assert len(bank) >= 4
    assert [pid for pid in bank if traces(memory_of(pid), secrets)] == []
    files = [path for path in sandbox.state.rglob("*") if path.is_file() and path.suffix not in {".key", ".pem"}]
    assert [path for path in files if traces([path.read_bytes()], secrets)] == []


def test_a_company_reads_its_pockets_with_a_token_bound_to_a_key(sandbox):
    told = printed(sandbox, "customer.py")
    assert "A DPoP token, bound to " in told
    assert "Dummy Customer Inc. (OPEN)" in told
    assert told.count("UST-13W") == 1
    again = printed(sandbox, "customer.py")
    assert again.count("UST-13W") == 1


def test_a_person_signs_in_and_lets_the_program_work_for_him(sandbox):
    box = msgspec.json.decode((sandbox.state / "sandbox.json").read_bytes())
    with running(sandbox, "customer.py", "--sign-in") as process, local_client(box["auth_url"], box["ca_file"]) as http:
        lines = iter(process.stdout.readline, "")
        address = next(found[0] for line in lines if (found := re.search(r"https://\S+", line)))
        back = Person(http, box).agree(address)
        assert back.startswith("http://127.0.0.1:")
        assert httpx.get(back).text == "Go back to the program."
        told = end_of(process)
    assert "A DPoP token, bound to " in told
    assert "Dummy Customer Inc. (OPEN)" in told
    assert "code=" not in told


def test_the_conformance_suite_finds_its_clients_in_the_sandbox(sandbox):
    """What the suite is told is true: the addresses answer, and the keys are the clients'."""
    with running(sandbox, "../conformance/prepare.py") as process:
        assert "Written to" in end_of(process)
    plan = msgspec.json.decode((sandbox.state / "conformance.json").read_bytes())
    box = msgspec.json.decode((sandbox.state / "sandbox.json").read_bytes())
    for name in ("client", "client2"):
        client = plan[name]
        [jwk] = client["jwks"]["keys"]
        key = jwt.PyJWK(jwk).key
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        back = "https://localhost.emobix.co.uk:8443/test/a/billfold/callback"
        me = ClientRegistration(
            issuer=box["auth_url"],
            client_id=client["client_id"],
            private_key=pem,
            kid=jwk["kid"],
            redirect_uri=back + ("" if name == "client" else "?dummy1=lorem&dummy2=ipsum"),
        )
        with local_client(box["auth_url"], box["ca_file"]) as http:
            assert http.get(plan["server"]["discoveryUrl"]).status_code == 200
            assert Authorization(me).begin(http, client["scope"].split()).url
        with local_client(box["customer_url"], box["ca_file"]) as http:
            assert http.get(plan["resource"]["resourceUrl"]).status_code == 401


def test_a_reader_signs_with_curl_as_the_guide_says(sandbox):
    guide = (SOURCE.parent / "docs/guides/sign_a_request.md").read_text()
    (lines,) = re.findall(r"```sh\n(.*?)```", guide, re.DOTALL)
    answer = subprocess.check_output(["bash", "-euc", lines], cwd=sandbox.state.parent, timeout=PATIENCE_SECONDS)
    assert "items" in msgspec.json.decode(answer)


def test_the_address_of_an_api_leads_a_browser_to_its_reference(sandbox):
    box, panel = msgspec.json.decode((sandbox.state / "sandbox.json").read_bytes()), sandbox.said.read_text()
    for url, title in ((box["partner_url"], "Partner API"), (box["customer_url"], "Customer API")):
        assert f"{url}/docs/" in panel
        with local_client(url, box["ca_file"]) as http:
            page = http.get("/", follow_redirects=True)
            assert (page.status_code, page.url.path) == (200, "/docs/")
            assert f"{title}</h1>" in page.text
    assert f"oathtool --totp -b {box['person']['totp_secret']}" in panel


def test_what_the_readme_lets_its_readers_save_is_no_part_of_the_project():
    saved = re.findall(r"save this\s+as\s+(\S+\.py)", (SOURCE.parent / "README.md").read_text())
    ignored = subprocess.check_output(["git", "check-ignore", *saved], cwd=SOURCE.parent, text=True)
    assert ignored.split() == saved != []


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"cards.py", "customer.py", "partner.py"}
