#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the gallery's pages from the tables that stand in them.

draw.py MOEGATE [NAME...]

NAME.sql selects from page_1, page_2, ... what NAME.svg shows: the tables of NAME.md, top to bottom, with a column
`heading` for what they stand under. Where a table has a column `95 % CI`, "1.20–1.30", it also has `low`, `high` and
`middle`, the middle on a log scale. A line '-- chart: FILE' names the Vega specification. The picture is what `moegate
report` makes of it, which needs a store to be asked: the gallery's own, of which no row is used. The picture of that
store, nvidia-h200-night.svg, is of its rows.
"""
import lzma
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

GALLERY = pathlib.Path(__file__).resolve().parent
STORE = "nvidia-h200-night"
OF_THE_STORE = ["roofline", "--filter", "^(moe_gate_up|moe_down)/"]


def cells_of(line):
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [re.sub(r"\*\*|`|\\(?=[|_*])", "", cell).strip() for cell in cells]


def tables_of(page):
    """(heading, columns, rows) of each table."""
    tables, heading, lines = [], "", []
    for line in page.splitlines() + [""]:
        if line.startswith("|"):
            lines.append(cells_of(line))
            continue
        if lines:
            tables.append((heading, lines[0], lines[2:]))
            lines = []
        if line.startswith(("#", "**")):
            heading = re.sub(r"[#*`\\]", "", line).strip()
    return tables


def interval_of(text):
    """low, high and middle of "1.20–1.30"; empty where it is none."""
    bounds = re.fullmatch(r"([\d.]+)–([\d.]+)", text)
    if not bounds:
        return ["", "", ""]
    low, high = float(bounds[1]), float(bounds[2])
    return [bounds[1], bounds[2], f"{math.sqrt(low * high):.3f}"]


def with_intervals(columns, rows):
    if "95 % CI" not in columns:
        return columns, rows
    at = columns.index("95 % CI")
    return columns + ["low", "high", "middle"], [row + interval_of(row[at]) for row in rows]


def literal(text):
    if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text):
        return text
    return "'" + text.replace("'", "''") + "'"


def with_tables(sql, page):
    """The report with the page's tables in front."""
    parts = []
    for number, (heading, columns, rows) in enumerate(tables_of(page), 1):
        if f"page_{number}" not in re.findall(r"page_\d+", sql):
            continue
        columns, rows = with_intervals(columns, rows)
        names = ", ".join('"' + (name or f"column {i}") + '"' for i, name in enumerate(["heading", *columns]))
        values = ",\n".join("(" + ", ".join(literal(cell) for cell in [heading, *row]) + ")" for row in rows)
        parts.append(f"page_{number} ({names}) AS (VALUES {values})")
    head, body = re.fullmatch(r"((?:--.*\n)*)((?:.*\n)*)", sql).groups()
    return head + "WITH " + ",\n".join(parts) + ("," + body[4:] if body.startswith("WITH") else "\n" + body)


def of_page(name, folder):
    """Writes the report of a page, with its chart beside it, into a folder; how `moegate report` is asked for it."""
    sql = (GALLERY / f"{name}.sql").read_text()
    report = folder / f"{name}.sql"
    report.write_text(with_tables(sql, (GALLERY / f"{name}.md").read_text()))
    chart = re.search(r"^-- chart: (\S+)$", sql, re.MULTILINE)[1]
    shutil.copy(GALLERY / chart, folder / f"{name}.vg.json")
    return [str(report)]


def draw(moegate, names, out):
    """Draws the named pictures into a folder."""
    with tempfile.TemporaryDirectory(prefix="moegate-gallery-") as scratch:
        folder = pathlib.Path(scratch)
        store = folder / "store.sqlite"
        store.write_bytes(lzma.decompress((GALLERY / f"{STORE}.sqlite.xz").read_bytes()))
        for name in names:
            report = OF_THE_STORE if name == STORE else of_page(name, folder)
            subprocess.run([moegate, "report", *report, "--db", str(store), "--chart", str(out / f"{name}.svg"),
                            "--format", "csv"], check=True, stdout=subprocess.DEVNULL)


def pictures():
    return [STORE] + sorted(sql.stem for sql in GALLERY.glob("*.sql") if (GALLERY / f"{sql.stem}.md").exists())


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    draw(sys.argv[1], sys.argv[2:] or pictures(), GALLERY)
