"""A visitor with Chromium: signs in with an authenticator app and opens pages, each of which must be valid."""

import asyncio
import re
import shutil
import time
from contextlib import asynccontextmanager
from functools import cache

import pyotp
from playwright.async_api import async_playwright
from tests.node.runtime import package_file

from billfold.sandbox.control_room import room
from billfold.web.app import PACKAGES, page_routes

WIDE, PHONE = 1280, 360
_THEMES = ("light", "dark")
_PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(window.shifts))))"
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


async def violations(page, themes=_THEMES, *, contrast_of_both=True):
    """Return which rules of axe a page breaks at a desk and on a phone; `wide` if a phone is too narrow for it.

    To measure contrast takes most of the time, and colors hardly depend on the width.
    """
    found = set()
    await page.evaluate(package_file("axe-core/axe.min.js").read_text())
    for theme, width in zip(themes, (WIDE, PHONE), strict=True):
        await page.emulate_media(color_scheme=theme)
        await page.set_viewport_size({"width": width, "height": 800})
        await page.evaluate(_PAINTED)  # on a busy machine links kept the colors of the other theme until then
        rules = "{}" if contrast_of_both or width == PHONE else "{'color-contrast': {enabled: false}}"
        result = await page.evaluate(f"axe.run({{resultTypes: ['violations'], preload: false, rules: {rules}}})")
        look = f"{theme} {width}"
        found |= {(look, each["id"], node["html"]) for each in result["violations"] for node in each["nodes"]}
    if await page.evaluate("document.documentElement.scrollWidth") > PHONE:
        found.add(("wide", "", ""))
    return found | {("wide", "table", each) for each in await page.evaluate(_WIDE_TABLES)}


STEP_SECONDS = 30
PATIENCE_SECONDS = 90
WINDOW = {"width": WIDE, "height": 900}
PHONE_WINDOW = {"width": PHONE, "height": 740}
_LOOKS = (("light", WINDOW, "light"), ("dark", WINDOW, "dark"), ("narrow", PHONE_WINDOW, "light"))
_NO_PAGES = ("download_", "open_link", "choose_company")
"""Functions that answer with a file, or lead on to a page."""
_WATCH_LAYOUT = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) {
    if (each.hadRecentInput || each.value < 0.02) continue;  // a slow machine paints a long page in two parts
    window.shifts.push([each.value, ...each.sources.map((one) => one.node && one.node.outerHTML)]);
  }
}).observe({ type: "layout-shift", buffered: true });
"""
_LINKS = "() => [...document.links].map((each) => each.href)"


def _page_patterns():
    """Return what the path of every page of a sandbox is like, by what is declared; fixed names come first."""
    routes = [each for package in (*PACKAGES, *room.PACKAGES) for each in page_routes(package)]
    shown = [each for each in routes if "GET" in each.http_methods and not each.fn.__name__.startswith(_NO_PAGES)]
    paths = {path for each in shown for path in each.paths if not path.startswith("/files/")}
    in_order = sorted(paths, key=lambda path: (path.count("{"), path))
    return {path: re.compile(re.sub(r"{\w+:str}", "[^/]+", path)) for path in in_order}


class Authenticator:
    """The app of a person: each code is good once, so the next comes from the next of the steps that count."""

    def __init__(self, secret):
        self._totp, self._last = pyotp.TOTP(secret), 0

    def code(self):
        now = int(time.time()) // STEP_SECONDS
        self._last = max(self._last + 1, now - 1)
        assert self._last <= now + 1, "A person would wait for the next code."
        return self._totp.generate_otp(self._last)


@cache
def authenticator_of(secret):
    """Return the app of a person, the same for all visits: a code is good once."""
    return Authenticator(secret)


class Gallery:
    """The errors of pages, and the folder for their pictures, if any."""

    def __init__(self, folder=None):
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.shown = folder, set()
        self.left = _page_patterns()
        """What was not yet opened on a phone."""
        self.faults: list[tuple[str, object]] = []

    async def show(self, page, name, *, is_walked=False):
        """Try a page with axe, and take its pictures, unless that was done. Contrast of those walked to only once."""
        if name in self.shown:
            return
        self.shown.add(name)
        if self.folder:
            await self._take_pictures(page, self.folder / name.replace(" ", "-"))
        # Themes differ in variables of the same style sheet: each page is tried with one of them at either width.
        themes = _THEMES if len(self.shown) % 2 else _THEMES[::-1]
        self.faults += [(name, each) for each in await violations(page, themes, contrast_of_both=not is_walked)]

    async def _take_pictures(self, page, file):
        for look, size, theme in _LOOKS:
            await page.set_viewport_size(size)
            await page.emulate_media(color_scheme=theme)
            await page.evaluate(_PAINTED)
            await page.screenshot(path=f"{file}-{look}.jpeg", type="jpeg", quality=80, full_page=True)

    def find_left(self, address):
        """Return the declared path of the page at an address if it was not yet opened on a phone."""
        path = address.partition("?")[0]
        return next((declared for declared, each in self.left.items() if each.fullmatch(path)), None)


class Visitor:
    """A window of a person, who has a session of its own."""

    def __init__(self, page, gallery, *, box, person):
        self.page, self._gallery, self._size = page, gallery, page.viewport_size
        self.box, self.person, self.app = box, person, person and authenticator_of(person.totp_secret)
        self.main = page.locator("main")
        self.links: set[str] = set()
        self._is_walking = False
        self.console: list[str] = []
        page.on("console", lambda each: self.console.append(each.text) if each.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: self.console.append(str(error)))

    @property
    def path(self):
        return self.page.url.partition("?")[0].removeprefix(self.box.auth_url)

    @classmethod
    async def arrive(cls, browser, gallery, *, box, person=None, window=WINDOW):
        """Open a window for a person, or for somebody whom the bank does not know."""
        context = await browser.new_context(ignore_https_errors=True, viewport=window)
        await context.add_init_script(_WATCH_LAYOUT)
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        return cls(await context.new_page(), gallery, box=box, person=person)

    async def go(self, path, name):
        """Open the page at a path, and look at it."""
        await self.page.goto(self.box.auth_url + path)
        await self.look(name)

    async def follow(self, label, name):
        """Click a link, and look at where it leads."""
        async with self.page.expect_navigation():
            await self.main.get_by_role("link", name=label).first.click()
        await self.look(name)

    async def press(self, label, name):
        """Press a button, and check the resulting page."""
        async with self.page.expect_navigation():
            await self.main.get_by_role("button", name=label, exact=True).first.click()
        await self.look(name)

    async def fill(self, **fields):
        """Fill fields by their labels, with _ for a space."""
        for label, value in fields.items():
            await self.main.get_by_label(label.replace("_", " ")).first.fill(value)

    async def text(self):
        """Return the text of the page."""
        return " ".join((await self.main.inner_text()).split())

    async def read_until(self, words, path, name):
        """Open a page again and again until it says some words, and look at it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            await self.page.goto(self.box.auth_url + path)
            if words in await self.text():
                break
            assert time.monotonic() < deadline, await self.text()
            await asyncio.sleep(1)
        await self.look(name)

    async def sign_in(self):
        """Sign in with email, password and a code of the app."""
        await self.go("/", "sign in")
        await self.fill(Email_address=self.person.email)
        await self.page.locator("#password").fill(self.person.password)
        await self.press("Sign in", "second factor")
        await self.fill(Code_from_your_authenticator_app=self.app.code())
        await self.press("Confirm", "home")

    async def look(self, name):
        """Look at the page that is open; what is wrong with it is among the faults of the gallery."""
        await self.page.wait_for_load_state()
        shifts = await self.page.evaluate(_PAINTED)
        self.links |= {each.removeprefix(self.box.auth_url) for each in await self.page.evaluate(_LINKS)}
        if self._size == PHONE_WINDOW:
            self._gallery.left.pop(self._gallery.find_left(self.path), None)
        self._gallery.faults += [(name, each) for each in (*shifts, *self.console)]
        self.console.clear()
        await self._gallery.show(self.page, name, is_walked=self._is_walking)
        await self.page.emulate_media(color_scheme="light")
        await self.page.set_viewport_size(self._size)

    async def walk(self):
        """See on a phone each page that is left as far as links lead there."""
        self._size, self._is_walking = PHONE_WINDOW, True
        await self.page.set_viewport_size(PHONE_WINDOW)
        while found := {declared: path for path in self.links if (declared := self._gallery.find_left(path))}:
            for declared, path in found.items():
                await self.go(path, " ".join(re.findall(r"[\w-]+(?!:)\b", declared.replace(":str}", ""))))
                self._gallery.left.pop(declared, None)
        self._is_walking = False
