"""The activity of a partner with its charts, as the partner and operators see it."""

from typing import Any
from uuid import UUID

from billfold.platform.money import format_usd
from billfold.servicing.activity import DAYS, read_activity
from billfold.web.console.charts import bar_chart
from billfold.web.console.team import TeamPage


async def activity_of(team: TeamPage, partner_id: UUID) -> dict[str, Any]:
    """Return what the template shows: by day, or with `?by=month` volumes by month."""
    page, by_month = team.page, team.page.query.get("by") == "month"
    async with page.pool.acquire() as conn:
        found = await read_activity(conn, partner_id, now=team.clock.now, wall=page.now, by_month=by_month)
    errors = [(each.refused, each.failures, each.failed_calls) for each in found.traffic]
    return {
        "activity": found,
        "by_month": by_month,
        "days": DAYS,
        "charts": {
            "volumes": bar_chart([each.by_rail for each in found.volumes], _dollars),
            "errors": bar_chart(errors),
        },
    }


def _dollars(cents: int) -> str:
    return format_usd(cents).removesuffix(".00")
