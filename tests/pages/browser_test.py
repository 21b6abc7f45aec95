#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws pages of a made-up store in a headless Chromium: every kind of page, its charts, tables and links.

browser_test.py MOEGATE [SCREENSHOTS]

Exits 77, with the reason, where something is missing that browser.py names.
"""
import contextlib
import json
import math
import pathlib
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import urllib.parse

import browser
import gallery_test
import make_store
from browser import By, Keys

KEY = "moe_down/experts=256,hidden=7168,launch=graph,cache=cold,routing=uniform,tokens=1,topk=8"
HOSTILE_KEY = KEY.replace("moe_down", "topk_sort")
CASE = f"case={KEY}&variant=chain3"
ENVIRONMENT = (16, 17)  # runs of the GPU, one after the other
NEWEST, HOST = 32, 30  # runs of make_store.py: the newest of the GPU and of the host
PAGES = {"start": "start", "night": f"night={NEWEST}", "older-night": "night=2",
         "operator": f"operator=moe_down&run={NEWEST}", "operator-host": f"operator=moe_down&run={HOST}",
         "case": CASE, "case-hostile": f"case={HOSTILE_KEY}&variant={make_store.HOSTILE}".replace("\u202e", "\ufffd"),
         "report": f"report=latency&run={NEWEST}", "own-report": f"report=own&run={NEWEST}",
         "pull-requests": "pull-requests", "compare": f"compare=21..{NEWEST}", "search": "search=moe_down tokens=64"}
# Of the gallery's store, whose runs have them; a run of each. A site has the reports of its newest run.
PULL_REQUESTS = {"pr-aphrodite-1603": 2, "pr-onnxruntime-29167": 3, "pr-sglang-10567": 4, "pr-tensorrt-llm-12686": 5}
PAGES |= {name: f"report={name}&run={run}" for name, run in PULL_REQUESTS.items()}
OWN_SQL = ("-- title: Results by variant\n"
           "SELECT variant, count(*) AS results FROM result JOIN process USING (process_id) "
           "WHERE run_id = :run GROUP BY variant\n")
OWN_CHART = """{"$schema": "https://vega.github.io/schema/vega/v5.json", "height": 100, "data": [{"name": "table"}],
"scales": [{"name": "x", "domain": {"data": "table", "field": "results"}, "range": "width"},
           {"name": "y", "type": "band", "domain": {"data": "table", "field": "variant"}, "range": "height"}],
"marks": [{"type": "rect", "name": "rows", "from": {"data": "table"}, "encode": {"enter": {
  "x": {"value": 0}, "x2": {"scale": "x", "field": "results"}, "y": {"scale": "y", "field": "variant"},
  "height": {"scale": "y", "band": 0.8}, "fill": {"value": "steelblue"}}}}]}"""


class PagesTest(browser.BrowserTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="moegate-pages-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.shots = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else cls.folder
        cls.shots.mkdir(parents=True, exist_ok=True)
        cls.db = cls.folder / "results.sqlite"
        make_store.make(cls.db, 12, 24)
        with sqlite3.connect(cls.db) as db:
            db.execute("UPDATE run_case SET suite = 'pr-aiter-3526' WHERE run_id = 2")
            # In the middle another compiler makes slower code of one commit: of one row.
            db.execute("UPDATE run SET git_sha = (SELECT git_sha FROM run WHERE run_id = ?) WHERE run_id = ?", ENVIRONMENT)
            db.execute("UPDATE result SET code = 'e', span_ns = 1.2 * span_ns WHERE variant = 'chain3' AND timer = 'cupti' "
                       "AND case_id = (SELECT case_id FROM bench_case WHERE key = ?) AND process_id IN "
                       "(SELECT process_id FROM process WHERE run_id >= ?)", [HOSTILE_KEY, ENVIRONMENT[1]])
        (cls.folder / "moegate.ini").write_text("[project]\nrepository = https://example.org/o/r\n")
        (cls.folder / "own.sql").write_text(OWN_SQL)
        (cls.folder / "own.vg.json").write_text(OWN_CHART)
        cls.moegate("pages", "--out", cls.folder / "site", "--report", cls.folder / "own.sql")
        claims = gallery_test.load("claims").unpacked(cls.folder)
        for name, run in reversed(PULL_REQUESTS.items()):
            with contextlib.closing(sqlite3.connect(claims)) as db:
                db.execute("PRAGMA foreign_keys = ON")
                db.execute("DELETE FROM run WHERE run_id > ?", [run])
                db.commit()
            report = gallery_test.GALLERY.parent / f"{name}.sql"
            cls.moegate("pages", "--out", cls.folder / name, "--report", report, store=claims)
        cls.moegate("gate", "--against", 1, "--run", 3, "--out", cls.folder / "verdict.html", exits=None)
        cls.open_browser()

    @classmethod
    def moegate(cls, *args, exits=0, store=None):
        done = subprocess.run([pathlib.Path(sys.argv[1]).resolve(), *map(str, args), "--db", str(store or cls.db)],
                              capture_output=True, text=True, cwd=cls.folder)
        assert exits is None or done.returncode == exits, done.stderr
        return done

    def open_page(self, page, site=None, **how):
        """Of a site by its address; else of those in the folder."""
        own = re.match("report=(pr-[^&]+)", page)
        site = site or (self.folder / (own[1] if own else "site")).as_uri()
        self.open(f"{site}/index.html#{urllib.parse.quote(page, safe='=,/&:')}", page, **how)

    def test_every_page_in_both_schemes_and_on_a_phone(self):
        for name, page in PAGES.items():
            with self.subTest(page=name):
                for dark in [False, True]:
                    self.open_page(page, dark=dark)
                    self.check_page(name)
                    self.check_axe(name)
                    self.shoot(name + ("-dark" if dark else ""))
                self.open_page(page, width=390)
                self.check_page(name)
                self.check_axe(name + " on a phone")
                self.shoot(name + "-phone")

    def test_pages_have_their_charts(self):
        expected = {"start": ["operators"] * 2, "night": ["night-change", "night-scatter"],
                    "operator": ["speedup", "roofline"], "case": ["history", "case-spans", "case-kernels"],
                    "own-report": ["own"]} | {name: [name] for name in PULL_REQUESTS}
        for name, charts in expected.items():
            self.open_page(PAGES[name])
            self.assertEqual(charts, self.check_page(name))

    def test_hostile_text_is_shown_as_text(self):
        self.open_page("start")
        text = self.js("return document.body.innerText")
        self.assertIn("<script>window.hacked=1</script>", text)
        self.assertNotIn("\u202e", text)

    def test_the_policy_allows_no_network(self):
        self.open_page("start")
        refused = self.browser.execute_async_script(
            "const done = arguments[0]; document.addEventListener('securitypolicyviolation',"
            " e => done(e.effectiveDirective)); fetch('http://127.0.0.1:9/').catch(() => 0)")
        self.assertEqual("connect-src", refused)
        self.browser.get_log("browser")

    def test_the_first_page_is_small(self):
        self.assertLess((self.folder / "site" / "index.html").stat().st_size, 1 << 20)

    def test_tables_sort_by_number_and_remember_it(self):
        self.open_page(PAGES["night"])
        self.assertEqual(["regressed", "regressed", "wrong"], self.column("outcome")[:3])
        button = next(b for b in self.browser.find_elements(By.CSS_SELECTOR, "th button") if b.text == "change (%)")
        button.click()
        rising = [float(text) for text in self.column("change (%)")]
        self.assertEqual(sorted(rising), rising)
        button.send_keys(Keys.ENTER)
        self.assertEqual(sorted(rising, reverse=True), [float(text) for text in self.column("change (%)")])
        address = self.browser.current_url
        self.open(address, PAGES["night"])
        self.assertEqual(sorted(rising, reverse=True), [float(text) for text in self.column("change (%)")])

    def test_tables_filter_and_remember_it(self):
        self.open_page(PAGES["night"])
        self.browser.find_element(By.CSS_SELECTOR, ".tools input").send_keys("tokens=64")
        self.assertEqual(6, len(self.column("case")))
        select = self.browser.find_element(By.XPATH, "//label[starts-with(., 'operator')]/select")
        select.send_keys("moe_down")
        self.assertEqual(["moe_down"] * 2, self.column("operator"))
        address = self.browser.current_url
        self.open(address, PAGES["night"])
        self.assertEqual(["moe_down"] * 2, self.column("operator"))
        self.assertEqual("2 of 25 rows", self.texts(".tools .note")[0])

    def test_the_start_begins_with_what_changed_by_cause(self):
        self.open_page("start")
        self.assertEqual("What changed on NVIDIA H200", self.texts("h2")[0])
        self.assertIn("8 slower", self.texts("main p strong")[0])
        self.assertEqual(["slower"] * 2, self.column("what")[:2])
        self.assertEqual(["4"] * 2, self.column("rows")[:2], "of one variant")
        self.assertRegex(self.column("trend")[0], "^[▁▂]+[▇█]+$")
        commits = self.browser.find_element(By.CSS_SELECTOR, "td a[href*='/compare/']")
        self.assertRegex(commits.get_attribute("href"), "^https://example.org/o/r/compare/[0-9a-f]+[.]{3}[0-9a-f]+$")
        self.assertEqual([], self.texts("tr.folded"))
        self.browser.find_element(By.CSS_SELECTOR, "td.opens button").send_keys(Keys.ENTER)
        self.check_page("start")
        self.assertEqual(4, len(self.texts("tr.folded td > a, tr.folded td a[href*='case=']")))
        self.check_axe("start, with an open row")
        self.shoot("start-open")

    def test_a_range_of_days_is_kept_in_the_address(self):
        self.open_page(CASE)
        summary = "[data-chart=history] summary"
        self.assertIn("(24 rows)", self.texts(summary)[0])
        self.browser.find_element(By.CSS_SELECTOR, ".range select").send_keys("last 7 days")
        self.wait_for("return document.querySelector('[data-chart=history]').dataset.drawn", "yes")
        self.check_page("case, last 7 days")
        self.assertIn("(8 rows)", self.texts(summary)[0])
        self.assertIn("days=7", self.browser.current_url)
        self.open(self.browser.current_url, CASE)
        self.assertIn("(8 rows)", self.texts(summary)[0])
        self.js("""const to = document.querySelectorAll('.range input')[1];
            to.value = '2026-01-04'; to.dispatchEvent(new Event('change'))""")
        self.wait_for("return document.querySelector('[data-chart=history]').dataset.drawn", "yes")
        self.check_page("case, to a day")
        self.assertIn("(4 rows)", self.texts(summary)[0])
        self.assertEqual("own", self.js("return document.querySelector('.range select').value"))
        self.assertIn("to=2026-01-04", self.browser.current_url)
        self.assertNotIn("days=", self.browser.current_url)
        self.assertEqual("https://example.org/o/r/commit/" + f"{1003:x}".ljust(12, "0"),
                         self.js("return document.querySelector('[data-chart=history] tbody tr:last-child a[href^=http]').href"))

    def test_two_runs_are_compared(self):
        self.open_page(PAGES["compare"])
        self.assertEqual([f"Run {NEWEST} against run 21"], self.texts("h1"))
        self.assertIn("8 slower", self.texts("main p strong")[0])
        self.assertEqual(["slower"] * 2, self.column("what"))
        self.assertEqual(["4"] * 2, self.column("rows"))
        for change in self.column("change (%)"):
            self.assertAlmostEqual(8, float(change), delta=1)
        against = self.browser.find_element(By.XPATH, "//label[starts-with(., 'against')]/select")
        against.send_keys("31 ")
        self.wait_for_page(f"compare=31..{NEWEST}")
        self.assertNotIn("8 slower", self.texts("main p strong")[0])
        self.open_page("compare")
        self.assertEqual([f"Run {NEWEST} against run 31"], self.texts("h1"))
        self.open_page(PAGES["night"])
        self.browser.find_element(By.LINK_TEXT, "compare with the run before").click()
        self.wait_for_page(f"compare=31..{NEWEST}")

    def test_everything_is_searched(self):
        self.open_page("start")
        self.browser.find_element(By.TAG_NAME, "body").send_keys("/")
        self.browser.switch_to.active_element.send_keys("tokens=64 CHAIN3 moe_down", Keys.ENTER)
        self.wait_for_page("search=tokens=64 CHAIN3 moe_down")
        self.assertEqual(["Rows"], self.texts("h2"))
        self.assertEqual(["chain3"], self.column("variant"))
        for words, heading in {"silu_mul": "Pages", "latency": "Pages", "nightly 2026-01-05": "Runs"}.items():
            self.open_page("search=" + words)
            self.assertEqual(heading, self.texts("h2")[0], words)
        self.open_page("search=nowhere")
        self.assertIn("Nothing has all", self.texts("main p")[0])

    def test_words_are_found_in_any_order(self):
        self.open_page(PAGES["night"])
        find = self.browser.find_element(By.CSS_SELECTOR, ".tools input")
        find.send_keys("Tokens=64  hidden=7168")
        self.assertEqual(6, len(self.column("case")))
        find.send_keys(" chain3 nowhere")
        self.assertEqual([], self.column("case"))

    def test_what_a_row_has_no_space_for_opens(self):
        self.open_page(PAGES["night"])
        self.check_page("night")
        seen = self.js("return [...document.querySelectorAll('table')[0].tHead.rows[0].cells]"
                       ".filter(c => !c.hidden).map(c => c.textContent)")
        self.assertLess({"outcome", "case", "variant", "change (%)", "why"}, set(seen))
        self.assertNotIn("against", seen)
        self.assertEqual([], self.texts("tr.folded"))
        button = self.browser.find_element(By.CSS_SELECTOR, "td.opens button")
        button.send_keys(Keys.ENTER)
        self.assertEqual("true", button.get_attribute("aria-expanded"))
        self.assertIn("againstbaselines/", self.texts("tr.folded")[0])
        button.send_keys(Keys.ENTER)
        self.assertEqual([], self.texts("tr.folded"))
        self.browser.find_element(By.XPATH, "//label[starts-with(., 'Sort by')]/select").send_keys("mde (%), desc")
        self.assertIn("s=-mde", urllib.parse.unquote(self.browser.current_url))
        self.browser.find_element(By.XPATH, "//button[starts-with(., 'All 16')]").click()
        self.assertEqual([], self.texts("td.opens"))
        self.assertEqual(1, len(self.scrolling()), "all columns, by choice")

    def test_a_phone_tells_rows_apart(self):
        self.open_page(PAGES["night"], width=390)
        self.check_page("night")
        self.assertIn("chain3", self.js("return document.querySelector('tbody tr .under').textContent"))
        self.assertRegex(self.texts("tbody tr .under")[0], r"change \(%\) ")

    def test_links_lead_to_cases_and_back(self):
        self.open_page(PAGES["night"])
        self.browser.find_element(By.CSS_SELECTOR, "td a").click()
        self.wait_for_page(CASE)
        self.assertEqual("main", self.js("return document.activeElement.id"))
        self.browser.back()
        self.wait_for_page(PAGES["night"])

    def test_a_page_that_is_not_there_says_so(self):
        self.open_page("night=999")
        self.assertEqual(["Not here"], self.texts("h1"))

    def test_the_history_draws_step_baseline_and_margin(self):
        self.open_page(CASE)
        history = "[data-chart=history] g."
        for mark, count in {"step": 1, "baseline": 1, "margin": 1, "intervals": 24, "interval": 1}.items():
            self.assertEqual(count, self.js("return document.querySelectorAll(arguments[0]).length",
                                            f"{history}{mark} > line, {history}{mark} > path"), mark)

    def test_a_step_of_the_environment_has_its_mark_and_its_legend(self):
        has = """const chart = document.querySelector('[data-chart=history]');
            return [chart.querySelectorAll('g.environment > path').length, chart.textContent.includes('step of the env'),
                    [...chart.querySelectorAll('tbody tr')].map(r => r.cells[9]?.textContent ?? '').filter(Boolean)]"""
        self.open_page(CASE)
        self.assertEqual([0, False, []], self.js(has), "its code changed with the commit")
        self.open_page(f"case={HOSTILE_KEY}&variant=chain3")
        self.assertEqual([1, True, ["environment"]], self.js(has))

    def test_the_history_has_every_run_with_its_interval(self):
        self.open_page(CASE)
        table = self.js("""const t = document.querySelector('[data-chart=history] table');
            return [...t.tBodies[0].rows].filter(r => !r.classList.contains('folded'))
                .map(r => [...r.cells].slice(0, 9).map(c => c.textContent))""")
        with sqlite3.connect(self.db) as db:
            wanted = db.execute("""SELECT p.run_id, min(r.code), group_concat(r.span_ns) FROM process p
                JOIN result r USING (process_id) JOIN bench_case USING (case_id) JOIN run USING (run_id)
                WHERE key = ? AND r.variant = 'chain3' AND r.timer = 'cupti' GROUP BY p.run_id ORDER BY p.run_id""",
                                [KEY]).fetchall()
        self.assertEqual([str(run) for run, _, _ in wanted], [row[0] for row in table])
        factor = 4.302653  # of a 95 % interval of three processes
        for row, (_, code, spans) in zip(table, wanted):
            logs = [math.log(float(span) / 1000) for span in spans.split(",")]
            reach = factor * statistics.stdev(logs) / math.sqrt(len(logs))
            for cell, log in zip(row[3:6], [0, -reach, reach]):
                self.assertAlmostEqual(1, float(cell) / math.exp(statistics.mean(logs) + log), delta=1e-4)
            self.assertEqual("3", row[6])
        changed = [i for i in range(1, len(wanted)) if wanted[i][1] != wanted[i - 1][1]]
        self.assertEqual([""] + ["changed" if i in changed else "same" for i in range(1, len(wanted))],
                         [row[7] for row in table])
        self.assertEqual(changed, [i for i, row in enumerate(table) if row[8]], "the step is where the code changed")

    def test_a_row_shows_all_that_is_known_of_it(self):
        self.open_page(CASE)
        headings = self.texts("h2")
        for part in ["History", "Verdicts", "Spans", "Launches", "Counters", "Accuracy", "Variants", "Commands"]:
            self.assertTrue(any(heading.startswith(part) for heading in headings), part)
        rows = self.js("""return [...document.querySelectorAll('table')].map(t =>
            [t.ariaLabel.split(' ')[0].replace(/[:,]$/, ''), t.tBodies[0].querySelectorAll('tr:not(.folded)').length])""")
        self.assertEqual({"History": 24, "Verdicts": 10, "Spans": 3, "Launches": 3, "Counters": 1, "Accuracy": 1,
                          "Variants": 2}, dict(rows))
        text = self.js("return document.body.innerText")
        self.assertRegex(text, r"moegate run --like \d+")
        with sqlite3.connect(self.db) as db:
            first = db.execute("""SELECT min(result_id) FROM process JOIN result r USING (process_id) JOIN bench_case
                USING (case_id) WHERE run_id = ? AND key = ? AND r.variant = 'chain3'""", [NEWEST, KEY]).fetchone()[0]
        self.assertIn(f"moegate run --like {first}", text)

    def test_a_row_is_found_in_whichever_file_it_is(self):
        db, site = self.folder / "many.sqlite", self.folder / "many"
        make_store.make(db, 60, 1)
        subprocess.run([sys.argv[1], "pages", "--db", str(db), "--out", str(site)], check=True, capture_output=True)
        files = sorted((site / "data").glob("rows-*.js"))
        self.assertGreater(len(files), 2)
        for file in files:
            pages = json.loads(file.read_text().removeprefix("moegatePart(").removesuffix(");\n"))["pages"]
            for page in [list(pages)[0], list(pages)[-1]]:
                self.open_page(page, site=site.as_uri())
                self.assertEqual([pages[page]["title"]], self.texts("h1"))
        self.assertNotIn("Pull requests", self.texts("nav a"), "it has no run of one")

    def test_the_keyboard_walks_over_a_chart(self):
        self.open_page(CASE)
        plot = self.browser.find_element(By.CSS_SELECTOR, "[data-chart=history] .plot")
        plot.send_keys(Keys.END)
        self.assertIn(f"run: {NEWEST}", self.texts("[data-chart=history] .reads")[0])
        plot.send_keys(Keys.ARROW_LEFT, Keys.ENTER)
        self.wait_for_page("night=31")

    def test_the_keyboard_reaches_everything_that_acts(self):
        self.open_page(PAGES["night"])
        unreachable = self.js("return [...document.querySelectorAll('a, button, input, select, .plot, .scroll')]"
                              ".filter(e => e.tabIndex < 0).length")
        self.assertEqual(0, unreachable)
        self.browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
        self.assertEqual("skip", self.js("return document.activeElement.className"))

    def test_on_paper_tables_are_whole(self):
        self.open_page(CASE)
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        self.js("window.dispatchEvent(new Event('beforeprint'))")
        self.assertTrue(self.js("return [...document.querySelectorAll('details')].every(d => d.open)"))
        self.assertEqual("none", self.js("return getComputedStyle(document.querySelector('header')).display"))
        rows, folded = self.js("""const t = [...document.querySelectorAll('table')].find(t => t.querySelector('tr.folded'));
            return [t.querySelectorAll('tbody tr:not(.folded)').length, t.querySelectorAll('tr.folded').length]""")
        self.assertEqual(rows, folded, "every row is open")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    def test_one_file_has_a_verdict_with_its_charts(self):
        page = self.folder / "verdict.html"
        self.open(page.as_uri())
        self.assertEqual(["night-change", "night-scatter"], self.check_page("verdict"))
        self.check_axe("verdict")
        self.shoot("verdict")
        self.assertNotRegex(page.read_text(), r"""(src|href)=["']?(https?:)?//""")

    def test_a_web_server_serves_them_too(self):
        with browser.served(self.folder / "site") as address:
            self.open_page(CASE, site=address)
            self.assertEqual(["history", "case-spans", "case-kernels"], self.check_page("served"))

    def test_reports_are_drawn_as_svg(self):
        for report, marks in {"speedup": 12, "roofline": 24, self.folder / "own.sql": 3}.items():
            svg = self.folder / "chart.svg"
            self.moegate("report", report, "--chart", svg)
            self.browser.get(svg.as_uri())
            self.assertEqual(marks, self.js("return document.querySelectorAll('g.rows > path').length"), report)
        (self.folder / "greedy.sql").write_text(OWN_SQL)
        (self.folder / "greedy.vg.json").write_text('{"data": [{"name": "table"}, {"name": "x", "url": "/etc/hostname"}]}')
        done = self.moegate("report", self.folder / "greedy.sql", "--chart", self.folder / "none.svg", exits=None)
        self.assertIn("may not load /etc/hostname", done.stderr)
        done = self.moegate("report", "runs", "--chart", self.folder / "none.svg", exits=2)
        self.assertIn("has no chart", done.stderr)

    def test_a_roofline_needs_no_ceilings(self):
        svg = self.folder / "chart.svg"
        done = self.moegate("report", "roofline", "--run", 2, "--chart", svg)  # a host's, whose ceilings nobody measured
        self.assertEqual("", done.stderr)
        self.browser.get(svg.as_uri())
        self.assertEqual(24, self.js("return document.querySelectorAll('g.rows > path').length"))


if __name__ == "__main__":
    browser.main()
