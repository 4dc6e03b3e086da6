"""The retention page names every table."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "operate" / "retention.md"


async def test_the_retention_page_lists_every_table_once(conn):
    rows = await conn.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    lines = PAGE.read_text().partition("## Rotation")[0].splitlines()
    named = [name for line in lines for cell in line.split(" | ")[1:2] for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(row["tablename"] for row in rows)
