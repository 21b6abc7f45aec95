#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the gallery's pages of the five pull requests, their pictures and README's table from the runs of `ci/claims`.

claims.py MOEGATE [STORE]

STORE, of one GPU and one commit, becomes claims.sqlite.xz, without samples; else that is read. A page keeps
what stands outside its lines "<!-- measured -->" and "<!-- end -->".
"""
import functools
import json
import lzma
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

GALLERY = pathlib.Path(__file__).resolve().parent
ROOT = GALLERY.parents[1]
ALL = GALLERY / "pull-requests"  # the picture of all five, and its figures
KEPT = GALLERY / "claims.sqlite.xz"
# Of each page the report that draws its picture, and the cases in it.
PICTURES = {
    "pr-aiter-3526": ("speedup", "launch=graph"),
    "pr-aphrodite-1603": ("pr-aphrodite-1603", "hidden=7168,inter=256|hidden=2048,inter=384"),
    "pr-onnxruntime-29167": ("pr-onnxruntime-29167", "other=scale-block=0"),
    "pr-sglang-10567": ("pr-sglang-10567", "."),
    "pr-tensorrt-llm-12686": ("pr-tensorrt-llm-12686", "inter=256,launch=graph,tokens=(128|192|256|288|384),"),
}
COLUMNS = ["pull request", "model", "tokens", "before", "before us", "variant", "us", "published", "published on", "here", "95 % CI",
           "says", "speedup", "low", "high", "best here", "best us", "best speed-up", "best speedup", "best low", "best high"]
RUNS = """SELECT label, run_id, started, git_sha, protocol, timer, flush, rounds, build, driver, device.uuid AS gpu, name
          FROM run JOIN device USING (device_id) WHERE status = 'complete' AND dirty = 0"""


def page_of(name):
    return GALLERY / f"{name}.md"


def picture_of(name):
    return page_of(name).with_suffix(".svg")


class Claims:
    """The newest complete run of each pull request, and what `moegate report` says of it."""

    def __init__(self, moegate, store):
        self.moegate, self.store = moegate, store
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
            db.row_factory = sqlite3.Row
            self.runs = {run["label"]: run for run in db.execute(RUNS + " ORDER BY run_id")}
            self.ceilings = dict(db.execute("SELECT name, value FROM ceiling").fetchall())
        missing = sorted(PICTURES.keys() - self.runs.keys())
        if missing:
            sys.exit(f"claims.py: {store} has no complete run of a clean commit of {', '.join(missing)}; ci/claims measures it")
        for what in ["git_sha", "gpu", "protocol"]:
            values = {str(self.runs[name][what]) for name in PICTURES}
            if len(values) > 1:
                sys.exit(f"claims.py: runs of {store} differ in {what}: {', '.join(sorted(values))}; measure them in one sitting")

    def report(self, name, report, form, *more):
        asked = [self.moegate, "report", report, "--db", str(self.store), "--run", str(self.runs[name]["run_id"]), "--format", form]
        return subprocess.run([*asked, *more], check=True, capture_output=True, text=True).stdout.strip()

    def conditions(self, name):
        run, c = self.runs[name], self.ceilings
        return (f"<sub>{run['name']} ({run['gpu']}, {run['driver']}), {run['started']}, commit {run['git_sha'][:12]}, "
                f"{run['build']}, protocol {run['protocol']}, timer {run['timer']}, flush {run['flush']}, {run['rounds']} processes. "
                f"Measured ceilings of this GPU: {c['read_bytes_per_s'] / 1e9:.0f} GB/s reading, "
                f"{c['copy_bytes_per_s'] / 1e9:.0f} GB/s copying, {c['fp8_flops'] / 1e12:.0f} TFLOP/s of fp8.\n"
                f"`moegate run --suite {name}`; the runs of all five are in [`{KEPT.name}`]({KEPT.name})</sub>")

    def measured(self, name):
        """What stands on a page between its two lines."""
        report = PICTURES[name][0]
        parts = [self.conditions(name), self.report(name, "claims", "md"), f"![{title_of(report)}]({picture_of(name).name})"]
        for report in reports_of(name):
            parts += [f"## {sentence(title_of(report))}", self.report(name, report, "md")]
        return "\n\n".join(parts)

    def draw(self, name, out):
        report, cases = PICTURES[name]
        self.report(name, report, "csv", "--filter", cases, "--chart", str(out))

    @functools.cache
    def claims(self, name):
        claims = json.loads(self.report(name, "claims", "json", "--columns", ",".join(COLUMNS)))
        if not claims:
            sys.exit(f"claims.py: {self.store}: run {self.runs[name]['run_id']} has not what {name} claims; ci/claims measures it")
        return claims

    def table(self):
        """README's."""
        lines = ["| pull request | case | before | its idea | it says | here | best variant here |", "| --- | --- | --: | --: | --- | --- | --- |"]
        lines += ["| " + " | ".join(cells_of(name, claim)) + " |" for name in PICTURES for claim in self.claims(name)]
        return "\n".join(lines)

    def values(self):
        """Of the picture of all five: the last claim of each, its idea and the best variant."""
        rows = []
        for name in PICTURES:
            claim = self.claims(name)[-1]
            case = [claim["pull request"], case_of(claim)]
            idea = [claim["variant"], claim["before us"], claim["us"], claim["speedup"], claim["low"], claim["high"]]
            best = [claim["best here"], claim["before us"], claim["best us"], claim["best speedup"], claim["best low"], claim["best high"]]
            page = page_of(name).name
            rows += [[*case, "its idea", *idea, page], [*case, "best here", *best, page]]
        return ",\n".join("  (" + ", ".join(literal(cell) for cell in row) + ")" for row in rows)


def literal(cell):
    if cell is None:
        return "NULL"
    return f"{cell:.4g}" if isinstance(cell, float) else repr(cell)


def case_of(claim):
    return f"{claim['model']}, {claim['tokens']} token{'s' if claim['tokens'] > 1 else ''}"


def cells_of(name, claim):
    says = claim["published"] and f"{claim['published']} on {claim['published on']}"
    here = f"{claim['here']} ({claim['95 % CI']})" if claim["95 % CI"] else claim["here"]
    return [f"[{claim['pull request']}](reports/gallery/{page_of(name).name})", case_of(claim),
            f"`{claim['before']}` {claim['before us']:g}", f"`{claim['variant']}` {claim['us']:g}", says,
            f"{here}: {claim['says']}", f"`{claim['best here']}` {claim['best us']:g}: **{claim['best speed-up']}**"]


def title_of(report):
    return (ROOT / "reports" / f"{report}.sql").read_text().splitlines()[0].removeprefix("-- title: ")


def sentence(title):
    return title[0].upper() + title[1:]


def reports_of(suite):
    """The tables that its section [run] names, but for that of claims."""
    line = re.search(r"^report *= *(.+)$", (ROOT / "suites" / f"{suite}.suite").read_text(), re.MULTILINE)
    return [name for name in re.split(r" *, *", line[1]) if name != "claims"]


def with_measured(text, measured):
    """The text with this between its two lines."""
    lines = re.compile(r"(<!-- measured -->\n\n|-- measured\n).*?(\n\n<!-- end -->|\n-- end)", re.DOTALL)
    if not lines.search(text):
        raise ValueError("no lines 'measured' and 'end'")
    return lines.sub(lambda found: found[1] + measured + found[2], text, count=1)


def texts(claims):
    """Path and text of every file that figures of these runs stand in."""
    measured = {page_of(name): claims.measured(name) for name in PICTURES}
    measured |= {ROOT / "README.md": claims.table(), ALL.with_suffix(".sql"): claims.values()}
    return {path: with_measured(path.read_text(), text) for path, text in measured.items()}


def kept(moegate, store):
    """The store without its samples, packed."""
    with tempfile.TemporaryDirectory(prefix="moegate-claims-") as folder:
        small = pathlib.Path(folder) / "small.sqlite"
        shutil.copy(store, small)
        subprocess.run([moegate, "store", "prune", "--keep-samples", "0", "--db", str(small)], check=True, stdout=subprocess.DEVNULL)
        return lzma.compress(small.read_bytes(), preset=9)


def unpacked(folder):
    store = pathlib.Path(folder) / "claims.sqlite"
    store.write_bytes(lzma.decompress(KEPT.read_bytes()))
    return store


def main(moegate, *stores):
    if stores:
        Claims(moegate, stores[0])  # which says what is missing
        KEPT.write_bytes(kept(moegate, stores[0]))
    with tempfile.TemporaryDirectory(prefix="moegate-claims-") as folder:
        claims = Claims(moegate, unpacked(folder))
        for path, text in texts(claims).items():
            path.write_text(text)
        for name in PICTURES:
            claims.draw(name, picture_of(name))
        claims.report("pr-aiter-3526", str(ALL.with_suffix(".sql")), "csv", "--chart", str(ALL.with_suffix(".svg")))


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
