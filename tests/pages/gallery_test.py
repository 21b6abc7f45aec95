#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of the gallery's picture stand in the pages that it names."""
import pathlib
import re
import sqlite3
import unittest

GALLERY = pathlib.Path(__file__).resolve().parents[2] / "reports" / "gallery"
TOKENS = {"R1 routing, 64 tokens": "64", "gpt-oss-20b int4 FC1, 8 tokens": "8", "R1 fp8 gate-up, 1 token": "1",
          "R1 fp8 down, 8192 tokens": "8192", "R1 dense FC2, 384 tokens": "384"}


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


if __name__ == "__main__":
    unittest.main()
