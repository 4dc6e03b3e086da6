"""A production bank offers no sandbox routes and imports no sandbox code."""

import subprocess
import sys

import pytest
from tests.reference.documents import DOCUMENTS, operations_of
from tests.support.browser import Browser
from tests.support.whole_bank import close_bank, open_bank
from tests.support.world import PartnerClient, close_app, new_partner

from billfold.wiring.server import make_host_router, make_partner_app

START = """
import sys
from billfold.wiring.cli.app import build_app
from billfold.wiring.cli_context import Wiring

app = build_app(Wiring({{}}), wanted="{command}")
{rest}
print(*loaded)
"""
SERVE = """
import billfold.wiring.server
from billfold.apis.partner_api import partner_operations
from billfold.platform.settings.settings import Settings
from billfold.wiring.providers import custodian_of, forbid_simulations, linking_provider_of, simulation_of
from billfold.wiring.scheduled_jobs import file_receivers, job_runners

settings = Settings(environment="production", custodian="none", linking_provider="none")
partner_operations()
file_receivers()
simulation = simulation_of(settings, b"")
assert linking_provider_of(settings, simulation) is None
assert custodian_of(settings) is None
job_runners(simulation)
loaded = [name for name in sys.modules if name.startswith("billfold.sandbox")]
forbid_simulations()
try:
    import billfold.sandbox.simulated_providers
except ImportError:
    sys.modules.pop("billfold.sandbox")
else:
    print("a simulated custodian can be imported")
"""


@pytest.mark.parametrize("command", ["serve", "run-https", "worker"])
def test_a_production_process_does_not_import_sandbox_modules(command):
    script = START.format(command=command, rest=SERVE)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


async def test_sandbox_routes_do_not_exist_in_production(bank_dsn):
    bank = await open_bank(bank_dsn, environment="production")
    app = make_partner_app(bank)
    caller = PartnerClient(app, await new_partner(bank))
    tried = [(method, path) for _, method, path, _ in operations_of(DOCUMENTS["partner"]) if "/sandbox/" in path]
    assert len(tried) > 10
    for method, path in tried:
        answer = await caller.send(method, path)
        assert answer.status_code in {400, 404}, (method, path, answer.text)
    assert not [each.path for each in app.operations if "/sandbox/" in each.path]
    router = make_host_router(bank)
    browser = Browser(router, address="127.0.0.1")
    assert (await browser.go("/sign-in")).status_code == 200
    for path in ("/sandbox", "/sandbox/components"):
        assert (await browser.go(path)).status_code == 404
    await browser.close()
    async with router.lifespan():
        pass
    await caller.close()
    await close_app(app)
    await close_bank(bank)
