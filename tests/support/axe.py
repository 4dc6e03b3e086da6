"""Pages in the Chromium of this machine: what axe says of them, and whether they fit."""

import shutil
from contextlib import asynccontextmanager

from playwright.async_api import async_playwright
from tests.node.runtime import package_file

WIDE, PHONE = 1280, 360
_WIDE_TABLES = """
() => [...document.querySelectorAll(".console .scroll:has(> table)")]
  .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerText.slice(0, 200))
"""


@asynccontextmanager
async def chromium():
    """Open the Chromium of this machine, without its windows where it comes so. Tests that do are marked `browser`."""
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()


async def violations(page):
    """Return which rules of axe a page breaks in either theme, and where; `wide` if a phone is too narrow for it."""
    found = set()
    await page.evaluate(package_file("axe-core/axe.min.js").read_text())
    for theme, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        await page.emulate_media(color_scheme=theme)
        result = await page.evaluate("options => axe.run(options)", {"resultTypes": ["violations"], **options})
        found |= {(theme, each["id"], node["html"]) for each in result["violations"] for node in each["nodes"]}
    await page.set_viewport_size({"width": PHONE, "height": 800})
    if await page.evaluate("document.documentElement.scrollWidth") > PHONE:
        found.add(("wide", "", ""))
    found |= {("wide", "table", each) for each in await page.evaluate(_WIDE_TABLES)}
    await page.set_viewport_size({"width": WIDE, "height": 800})
    return found
