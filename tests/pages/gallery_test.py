#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The gallery's figures are those of its stored runs, and its pictures those of the figures in its pages.

gallery_test.py [MOEGATE]

Draws them again where there are node and libjs-vega, and MOEGATE to ask.
"""
import importlib.util
import pathlib
import shutil
import sqlite3
import sys
import tempfile
import unittest

GALLERY = pathlib.Path(__file__).resolve().parents[2] / "reports" / "gallery"
VEGA = pathlib.Path("/usr/share/javascript/vega/vega-view.min.js")
MOST_BYTES = 100_000
CAN_DRAW = unittest.skipUnless(len(sys.argv) > 1 and shutil.which("node") and VEGA.exists(), "needs moegate, node, libjs-vega")


def load(name):
    spec = importlib.util.spec_from_file_location(name, GALLERY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class GalleryTest(unittest.TestCase):
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

    def test_tables_are_read_as_they_stand(self):
        page = "# T\n\n**a · `b`**\n\n| x | **y** |  |\n| --- | --: | --- |\n| `1\\|2` | 0.5 | it's |\n\n| z |\n|---|\n| 7 |\n"
        sql = load("draw").with_tables("-- title: t\nSELECT page_1.heading, x, y, \"column 3\", z FROM page_1, page_2\n", page)
        self.assertTrue(sql.startswith("-- title: t\n"))
        self.assertEqual([("a · b", "1|2", 0.5, "it's", 7)], sqlite3.connect(":memory:").execute(sql).fetchall())

    @CAN_DRAW
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
        self.assertEqual(["[ONNX Runtime 29167](reports/gallery/pr-x.md)", "m, 1 token", "`b` 9.5", "`v` 9", "1.08x on H200",
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

    @unittest.skipUnless(len(sys.argv) > 1, "needs moegate")
    def test_the_figures_are_those_of_the_stored_runs(self):
        claims = load("claims")
        with tempfile.TemporaryDirectory() as folder:
            for path, text in claims.texts(claims.Claims(sys.argv[1], claims.unpacked(folder))).items():
                self.assertEqual(text, path.read_text(), f"{path}: reports/gallery/claims.py writes it again")

    @CAN_DRAW
    def test_the_pictures_are_those_of_the_stored_runs(self):
        claims = load("claims")
        with tempfile.TemporaryDirectory() as folder:
            of_store = claims.Claims(sys.argv[1], claims.unpacked(folder))
            for name in claims.PICTURES:
                drawn = pathlib.Path(folder) / f"{name}.svg"
                of_store.draw(name, drawn)
                self.assertTrue(drawn.read_bytes() == claims.picture_of(name).read_bytes(), f"{name}.svg is of other figures")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main(argv=sys.argv[:1])
