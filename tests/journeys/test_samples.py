"""Samples, copied out of the pages that a sandbox serves and run as they stand."""

import re
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from pikepdf import Pdf
from tests.node.samples import run_typescript
from tests.reference.documents import DOCUMENTS
from tests.support.sandbox_process import Sandbox

from billfold.documentation.operations import call_of, operations_of
from billfold.oauth.server.app import auth_document
from billfold.platform.settings.settings import Settings
from billfold_client.local import local_client
from billfold_client.sandbox import sandbox_partner

OPERATIONS = [
    each
    for name, document in {**DOCUMENTS, "auth": auth_document(Settings())}.items()
    for each in operations_of(name, msgspec.to_builtins(document))
]
SAMPLES = [
    (api, name)
    for api, names in {
        "partner": "list_pockets get_customer get_public_keys sandbox_clock sandbox_wire log_in create_pocket "
        "update_pocket delete_subscription upload_document",
        "customer": "get_customer get_trades_csv create_pocket update_pocket upload_document",
        "auth": "show_keys issue_token",
    }.items()
    for name in names.split()
]
"""Operations of every kind: how their sender is proved, what they send, what they answer."""
READS_THAT_RUN_MIN, SLICE = 80, 16


@pytest.fixture(scope="module")
def sandbox(memory_folder):
    """A running sandbox that has not played its story."""
    running = Sandbox(memory_folder, "--seed", "7", "--no-story")
    try:
        yield running.wait_up()
    finally:
        running.end()


def test_samples_copied_from_the_served_pages_run_as_they_stand(sandbox, monkeypatch):
    monkeypatch.chdir(sandbox.state.parent)
    with Pdf.new() as document:
        document.add_blank_page()
        document.save("document.pdf")
    Path(".curlrc").write_text("fail-with-body\n")
    monkeypatch.setenv("CURL_HOME", ".")
    home = sandbox.home()
    with sandbox_partner() as api:
        pocket = api.create_pocket(home.customer_id, pocket_name="Samples", deposit_strategy_id="UST-13W")
        body = operation_of("partner", "create_subscription").request_example
        for _ in range(3):
            api.create_subscription(**body)
    with local_client(home.partner_url, home.ca_file) as http:
        whole = copy_sample(http, "curl", "partner", "list_pockets")
        assert str(pocket.id) in run_shell(whole)
        # Each begins with a command that takes a second.
        command, _ = whole.split("\n", 1)
        for language in ("curl", "Python", "TypeScript"):
            for name, value in exported(command).items():  # an assertion is good once
                monkeypatch.setenv(name, value)
            copied = {f"{api} {name}": copy_sample(http, language, api, name) for api, name in SAMPLES}
            needed = {line for code in copied.values() for line in code.splitlines() if "First, in the shell: " in line}
            assert {line.partition("shell: ")[2] for line in needed} <= {command}
            if language == "TypeScript":
                printed = run_typescript(copied)
            else:
                run = run_python if language == "Python" else run_shell
                printed = {name: run(without(command, code)) for name, code in copied.items()}
            assert printed.keys() == copied.keys()
            assert str(pocket.id) in str(printed["partner list_pockets"]), language
        run_reads(http, command)


def run_reads(http, command):
    """Run samples of reads in a shell, one of sixteen of those whose pages say that this sandbox has what they need."""
    served = [(api, http.get(f"/docs/api/{api}/openapi.json").json()) for api in DOCUMENTS]
    operations = [each for api, document in served for each in operations_of(api, document)]
    reads = [each for each in operations if each.method == "GET" and not call_of(each).is_stream]
    pages = {each.address: http.get(f"{each.address}.md").text for each in reads}
    runs = {address: text for address, text in pages.items() if "This sandbox " not in text}
    assert len(runs) > READS_THAT_RUN_MIN
    for address in list(runs)[::SLICE]:
        assert run_shell(without(command, sample_in(runs[address], "curl"))) is not None, address


def copy_sample(http, language, api, name):
    """Return the sample of an operation from its page."""
    return sample_in(http.get(f"/docs/api/{api}/{name}.md").raise_for_status().text, language)


def sample_in(page, language):
    """Return the sample in one language from a page as Markdown."""
    (code,) = re.findall(rf"^{language}:\n\n```\w+\n(.*?)\n```$", page, re.DOTALL | re.MULTILINE)
    return code


def without(command, code):
    """Return a sample without the command that was run before; in a shell it begins with it."""
    return code.removeprefix(f"{command}\n")


def exported(command):
    """Return the variables that a command sets in a shell."""
    shown = subprocess.check_output(["bash", "-euc", f"{command}; env -0"], text=True)
    return dict(each.split("=", 1) for each in shown.split("\0") if each)


def operation_of(api, name):
    """Return an operation of an API."""
    return next(each for each in OPERATIONS if (each.api, each.id) == (api, name))


def run_shell(code):
    """Return the output of a sample in a shell."""
    return subprocess.check_output(["bash", "-euc", code], stderr=subprocess.PIPE, text=True)


def run_python(code):
    """Return the output of a sample in Python."""
    with redirect_stdout(StringIO()) as out:
        exec(code, {})
    return out.getvalue()
