"""The scenarios there are, and how one is played from its first step to its last."""

from collections.abc import Mapping
from types import MappingProxyType

from billfold.client.partner_api import PartnerApi
from billfold.sandbox.control.tasks import Progress
from billfold.sandbox.credentials_file import SandboxFile
from billfold.sandbox.sandbox_client import partner_http
from billfold.sandbox.scenarios.bad_week import BAD_WEEK
from billfold.sandbox.scenarios.card_month import CARD_MONTH
from billfold.sandbox.scenarios.payday import PAYDAY
from billfold.sandbox.scenarios.player import MarketChanges, Player, seed_of
from billfold.sandbox.scenarios.recording_client import RecordingClient
from billfold.sandbox.scenarios.types import Scenario

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({each.name: each for each in (BAD_WEEK, PAYDAY, CARD_MONTH)})


def play(
    scenario: Scenario, credentials: SandboxFile, market: MarketChanges, *, bank_seed: bytes, progress: Progress
) -> None:
    """Play a scenario; blocks. Raises CliError when the bank refuses something.

    What it creates is named after how often this bank has seen it, and derived from that: the same in the same bank.
    """
    with partner_http(credentials) as http:
        title = scenario.name.replace("-", " ").capitalize()
        earlier = [each for each in PartnerApi(http).customers() if str(each.name).startswith(f"{title} ")]
        nth = len(earlier) + 1
        client = RecordingClient(http, seed=seed_of(bank_seed, scenario.name, nth))
        player = Player(client, market, f"{title} {nth}")
        for step in scenario.steps:
            progress.begin(step.title)
            progress.note(step.act(player))
