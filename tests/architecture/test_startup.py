"""A process that starts loads no library that only some requests, jobs or commands need."""

import subprocess
import sys

import pytest

AT_USE = {
    "PIL", "boto3", "email_validator", "eth_account", "eth_keys", "eth_utils", "obstore", "opentelemetry",
    "phonenumbers", "pikepdf", "prometheus_client", "pydantic", "pypdf", "rlp", "xlsxwriter", "zxcvbn",
}  # fmt: skip
IN_PAGES = {"jinja2", "litestar", "webauthn"}
IN_COMMANDS = {"httpx", "markdown_it"}
"""A help text is Markdown to its library, and commands of a sandbox are clients."""
SHOW = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
SERVE = """
from billfold.wiring.cli import serve
from billfold.wiring import server
from billfold.wiring.open_bank import load_rules
server.partner_operations()
load_rules()
"""
WORKER = """
from billfold.wiring.cli import serve
from billfold.wiring import scheduled_jobs
from billfold.wiring.open_bank import load_rules
load_rules()
"""
HELP = """
import os
from billfold.wiring.cli import app
from billfold.wiring.cli_context import Wiring
app.run(Wiring(os.environ), ["--help"])
"""


@pytest.mark.parametrize(
    ("start", "avoided"),
    [(SERVE, AT_USE | {"httpx"}), (WORKER, AT_USE | IN_PAGES | IN_COMMANDS), (HELP, AT_USE | IN_PAGES)],
    ids=["serve", "worker", "help"],
)
def test_a_process_that_starts_loads_no_library_of_few_uses(start, avoided):
    shown = subprocess.run([sys.executable, "-c", start + SHOW], capture_output=True, text=True, check=True).stdout
    loaded = set(shown.splitlines()[-1].split())
    assert {"billfold", "asyncpg", "msgspec"} <= loaded
    assert sorted(loaded & avoided) == []
