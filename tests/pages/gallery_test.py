#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The gallery's pictures are those of the figures in its pages.

gallery_test.py [MOEGATE]

Draws them again where there are node and libjs-vega, and MOEGATE to ask.
"""
import importlib.util
import pathlib
import re
import shutil
import sqlite3
import sys
import tempfile
import unittest
import xml.etree.ElementTree

GALLERY = pathlib.Path(__file__).resolve().parents[2] / "reports" / "gallery"
VEGA = pathlib.Path("/usr/share/javascript/vega/vega-view.min.js")
MOST_BYTES = 100_000
TOKENS = {"R1 routing, 64 tokens": "64", "gpt-oss-20b int4 FC1, 8 tokens": "8", "R1 fp8 gate-up, 1 token": "1",
          "R1 fp8 down, 8192 tokens": "8192", "R1 dense FC2, 384 tokens": "384"}


def load(name):
    spec = importlib.util.spec_from_file_location(name, GALLERY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def marks(picture, name):
    """How many symbols of that mark a picture has."""
    svg = xml.etree.ElementTree.parse(GALLERY / f"{picture}.svg")
    groups = [g for g in svg.iter("{http://www.w3.org/2000/svg}g") if name in g.get("class", "").split()]
    return sum(len(list(g)) for g in groups)


class GalleryTest(unittest.TestCase):
    def test_every_figure_is_in_its_page(self):
        db = sqlite3.connect(":memory:")
        db.row_factory = sqlite3.Row
        rows = db.execute((GALLERY / "pull-requests.sql").read_text()).fetchall()
        self.assertEqual(10, len(rows))
        for row in rows:
            lines = (GALLERY / row["page"]).read_text().splitlines()
            cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("|")]
            mine = [line for line in cells if row["variant"] in line and TOKENS[row["case"]] in line]
            figures = [set(re.findall(r"\d+(?:\.\d+)?", " ".join(line))) for line in mine]
            wanted = {row["us"], row["speed-up"], row["from"], row["to"]}
            found = any(all(any(float(figure) == value for figure in line) for value in wanted) for line in figures)
            self.assertTrue(found, f"{row['page']}: no line of {row['variant']} has {sorted(wanted)}")
            before = any(float(figure) == row["before us"] for line in cells
                         for figure in re.findall(r"\d+(?:\.\d+)?", " ".join(line)))
            self.assertTrue(before, f"{row['page']}: no {row['before us']} us")

    def test_the_picture_is_of_these_figures(self):
        db = sqlite3.connect(":memory:")
        picture = (GALLERY / "pull-requests.svg").read_text()
        for variant, us in db.execute((GALLERY / "pull-requests.sql").read_text().replace(
                "SELECT * FROM published", "SELECT variant, us FROM published")):
            self.assertIn(f"{variant} {us:g} us", picture)

    def test_every_page_shows_its_picture(self):
        for page in GALLERY.glob("*.md"):
            name = "pull-requests" if page.stem == "README" else page.stem
            self.assertIn(f"({name}.svg)", page.read_text(), page.name)
            self.assertLess((GALLERY / f"{name}.svg").stat().st_size, MOST_BYTES, name)

    def test_pull_requests_have_a_mark_for_each_row_and_published_figure(self):
        for name, published in {"aphrodite-1603": ["expected speed-up"], "tensorrt-llm-12686": ["published speed-up"],
                                "sglang-10567": ["published down us, H20"],
                                "onnxruntime-29167": ["published FC1 us, hot", "published FC2 us, hot"]}.items():
            page = f"nvidia-h200-pr-{name}"
            sql = load("draw").with_tables((GALLERY / f"{page}.sql").read_text(), (GALLERY / f"{page}.md").read_text())
            db = sqlite3.connect(":memory:")
            db.row_factory = sqlite3.Row
            rows = db.execute(sql).fetchall()
            self.assertGreater(len(rows), 0, name)
            self.assertEqual(len(rows), marks(page, "rows"), name)
            said = sum(row[column] != "" for row in rows for column in published)
            # SGLang's are ratios of two of its times, as both GEMMs have them.
            self.assertEqual(2 if name == "sglang-10567" else said, marks(page, "said"), name)

    def test_tables_are_read_as_they_stand(self):
        page = "# T\n\n**a · `b`**\n\n| x | **y** |  |\n| --- | --: | --- |\n| `1\\|2` | 0.5 | it's |\n\n| z |\n|---|\n| 7 |\n"
        sql = load("draw").with_tables("-- title: t\nSELECT page_1.heading, x, y, \"column 3\", z FROM page_1, page_2\n", page)
        self.assertTrue(sql.startswith("-- title: t\n"))
        self.assertEqual([("a · b", "1|2", 0.5, "it's", 7)], sqlite3.connect(":memory:").execute(sql).fetchall())

    @unittest.skipUnless(len(sys.argv) > 1 and shutil.which("node") and VEGA.exists(), "needs moegate, node, libjs-vega")
    def test_the_pictures_are_what_the_pages_say(self):
        draw = load("draw")
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            draw.draw(sys.argv[1], draw.pictures(), out)
            for name in draw.pictures():
                same = (out / f"{name}.svg").read_bytes() == (GALLERY / f"{name}.svg").read_bytes()
                self.assertTrue(same, f"{name}.svg is not what {name}.md says; reports/gallery/draw.py draws it again")


class ClaimsTest(unittest.TestCase):
    CLAIM = {"pull request": "ONNX Runtime 29167", "model": "m", "tokens": 1, "before": "b", "before us": 9.5, "variant": "v", "us": 9.0,
             "published": "1.08x", "published on": "H200", "here": "1.05x", "95 % CI": "1.04–1.06", "says": "not repeated",
             "best here": "s", "best us": 3.0, "best speed-up": "3.17x"}

    def test_a_row_of_readme(self):
        self.assertEqual(["[ONNX Runtime 29167](reports/gallery/nvidia-h200-pr-x.md)", "m, 1 token", "`b` 9.5", "`v` 9", "1.08x on H200",
                          "1.05x (1.04–1.06): not repeated", "`s` 3: **3.17x**"], load("claims").cells_of("pr-x", self.CLAIM))

    def test_what_people_wrote_stays(self):
        page = "# T\n\nwhy\n\n<!-- measured -->\n\nold\n\n<!-- end -->\n\nwhat is not here\n"
        self.assertEqual(page.replace("old", "new"), load("claims").with_measured(page, "new"))
        self.assertEqual("VALUES\n-- measured\nnew\n-- end\n", load("claims").with_measured("VALUES\n-- measured\nold\n-- end\n", "new"))
        with self.assertRaises(ValueError):
            load("claims").with_measured("# T\n", "new")

    def test_every_suite_of_a_pull_request_has_a_page_and_ends_with_its_tables(self):
        claims = load("claims")
        self.assertEqual(sorted(path.stem for path in (GALLERY.parents[1] / "suites").glob("pr-*.suite")), sorted(claims.PICTURES))
        for name in claims.PICTURES:
            self.assertIn(name, claims.reports_of(name))
            self.assertTrue(claims.page_of(name).exists(), name)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(argv=sys.argv[:1])
