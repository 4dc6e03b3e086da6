"""Workers that do all the work of `billfold worker` until they are killed."""

import asyncio
import os

from tests.simulation.forks import Workers, fork_workers

from billfold.platform.telemetry.logs import configure_logging
from billfold.wiring.cli_context import Wiring


def forked_workers(settings, **changes):
    """Return the workers of the bank that these settings name."""
    env = Wiring(os.environ).environment(settings, settings.database_url, log_level="WARNING", **changes)
    with (settings.state_dir / "worker.log").open("ab") as log:
        return Workers(__name__, log=log, env=env)


async def work(_):
    ground = Wiring(os.environ)
    settings = ground.settings()
    configure_logging(settings.log_level)
    async with ground.bank(settings, settings.database_url or "") as bank:
        await ground.work(bank, asyncio.Event())


if __name__ == "__main__":
    fork_workers(work)
