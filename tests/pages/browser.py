# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium: opens pages, asks what is on them, and checks what every page keeps to.

main() exits 77, with the reason, where Debian's chromium, chromium-driver, python3-selenium or libjs-vega are missing.
With axe-core, which `ci/setup browser` installs where npm is, no page may have a violation that is worse than minor.
"""
import contextlib
import functools
import http.server
import pathlib
import shutil
import sys
import threading
import unittest

SKIPPED = 77
AXE = pathlib.Path(__file__).resolve().parents[2] / ".cache/axe/node_modules/axe-core/axe.min.js"
VEGA = pathlib.Path("/usr/share/javascript/vega/vega-view.min.js")
try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError as error:
    print(f"skipped: {error}; install Debian's python3-selenium")
    sys.exit(SKIPPED)


def chromium():
    options = webdriver.ChromeOptions()
    for flag in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]:
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.chrome.service.Service(shutil.which("chromedriver"))
    return webdriver.Chrome(service=service, options=options)


class BrowserTest(unittest.TestCase):
    """Has `shots`, the folder of its screenshots, before it opens the browser."""
    @classmethod
    def open_browser(cls):
        cls.browser = chromium()
        cls.addClassCleanup(cls.browser.quit)

    def tearDown(self):
        # Chromium's log is emptied by reading it: what is left is this test's.
        self.assertEqual([], [entry for entry in self.browser.get_log("browser")])

    def js(self, script, *args):
        return self.browser.execute_script(script, *args)

    def open(self, address, page="start", width=1280, dark=False):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.browser.get("about:blank")
        self.browser.get(address)
        self.wait_for_page(page)
        self.wait_for("return [...document.querySelectorAll('.chart')].every(c => c.dataset.drawn)")

    def wait_for(self, script, value=True):
        WebDriverWait(self.browser, 30).until(lambda _: self.js(script) == value)

    def wait_for_page(self, page):
        self.wait_for("return document.getElementById('main').dataset.page", page)

    def scrolling(self):
        """Tables that are seen and wider than their place."""
        return self.js("""return [...document.querySelectorAll('.scroll')].filter(s => s.checkVisibility()
            && s.scrollWidth > s.clientWidth).map(s => s.ariaLabel)""")

    def texts(self, selector):
        return self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def column(self, name):
        """Cells of the first table's column, top to bottom."""
        return self.js("""const t = document.querySelector('table');
            const i = [...t.tHead.rows[0].cells].findIndex(c => c.querySelector('button').firstChild.data === arguments[0]);
            return [...t.tBodies[0].rows].map(r => r.cells[i].textContent)""", name)

    def shoot(self, name):
        height = self.js("return document.body.scrollHeight")
        width = self.js("return window.innerWidth")
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": min(height, 4000), "deviceScaleFactor": 1, "mobile": False})
        self.browser.save_screenshot(str(self.shots / f"{name}.png"))

    def check_page(self, name):
        self.assertFalse(self.js("return document.title").startswith("Not here"), name)
        self.assertIsNone(self.js("return window.hacked ?? null"), name)
        self.assertEqual(0, self.js("return document.querySelectorAll('main script, main img, main style').length"), name)
        self.assertLessEqual(self.js("return document.documentElement.scrollWidth - window.innerWidth"), 0,
                             f"{name} scrolls sideways")
        self.wait_for(
            "return [...document.querySelectorAll('.scroll')].every(s => !s.checkVisibility() || s.dataset.fitted)")
        self.assertEqual([], self.scrolling(), name)
        charts = self.js("""return [...document.querySelectorAll('.chart')].map(c => [c.dataset.chart, c.dataset.drawn,
            c.querySelectorAll('g.rows > path').length, c.querySelector('summary').textContent])""")
        for chart, drawn, marks, summary in charts:
            self.assertEqual("yes", drawn, f"{name}: {chart}")
            self.assertIn(f"({marks} rows)", summary, f"{name}: {chart} has as many marks as rows")
        return [chart[0] for chart in charts]

    def check_axe(self, name):
        if not AXE.exists():
            return
        # The page's policy lets no script in; the driver's own run outside it.
        self.js(AXE.read_text() + "; window.axe = axe || window.axe")
        found = self.browser.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations"
            ".filter(v => v.impact !== 'minor')"
            ".map(v => v.id + ': ' + v.nodes[0].html.slice(0, 300) + ' ' + v.nodes[0].failureSummary)))")
        self.assertEqual([], found, name)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def send_error(self, code, *args):  # Chromium asks for an icon
        super().send_error(204 if self.path == "/favicon.ico" else code, *args)


@contextlib.contextmanager
def served(folder):
    """The address of a web server of a folder."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def missing():
    for program, package in {"chromium": "chromium", "chromedriver": "chromium-driver", "node": "nodejs"}.items():
        if not shutil.which(program):
            return f"there is no {program}; install Debian's {package}"
    return None if VEGA.exists() else f"there is no {VEGA}; install Debian's libjs-vega"


def main():
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    if not AXE.exists():
        print("without axe-core: `ci/setup browser` installs it where npm is")
    unittest.main(argv=sys.argv[:1], verbosity=2)
