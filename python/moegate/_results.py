# SPDX-License-Identifier: Apache-2.0
"""Results of a store as records: what `moegate report NAME --format json` says, with numbers as numbers."""

import json
import os
import pathlib


def program():
    """The program: MOEGATE_PROGRAM, that of an installed wheel, or moegate of PATH."""
    import shutil

    wheel = pathlib.Path(__file__).parent / "_home" / "bin" / "moegate"
    named = os.environ.get("MOEGATE_PROGRAM") or (str(wheel) if wheel.exists() else shutil.which("moegate"))
    if not named:
        raise RuntimeError("there is no program moegate in PATH; set MOEGATE_PROGRAM to its path")
    return named


def results(store=None, report="latency", run="latest", case=None, variant=None, **equal):
    """The rows of a report of a run, as a list of dicts with the report's columns for keys.

    store: path of the SQLite file; None: the store that commands take without --db.
    report: a name of `moegate list reports`, or the path of an .sql file.
    run: "latest", a number or a label.
    case, variant: regular expressions, as --filter and --variant.
    equal: columns and the values that they must have; a name with blanks goes in as **{"Before (us)": 9.1}.

        import moegate, pandas
        frame = pandas.DataFrame(moegate.results("out/results.sqlite", case="tokens=8(,|$)"))
        frame.pivot(index="case", columns="variant", values="us")

    Raises RuntimeError with the program's message, KeyError for a column that the report has not."""
    import subprocess  # not by a worker, which imports this package and has no use for it

    command = [program(), "report", report, "--run", str(run), "--format", "json"]
    for flag, value in (("--db", store), ("--filter", case), ("--variant", variant)):
        if value is not None:
            command += [flag, os.fspath(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{command[0]} ended with code {done.returncode}")
    return [row for row in json.loads(done.stdout) if all(row[name] == value for name, value in equal.items())]


def best_configurations(store, variant, run="latest", **equal):
    """What a run of `moegate tune --check` found fastest for a variant that chooses: a dict by token count, ascending,
    of dicts of its knobs. Written as JSON, it is a file of vLLM's and SGLang's kind.

        with open("E=256,N=256,device_name=NVIDIA_H200.json", "w") as file:
            json.dump(moegate.best_configurations("out/tune.sqlite", "engine", routing="uniform"), file, indent=4)

    store, run, equal: as of results(); its rows are those of report regret. Raises as results() does, ValueError where
    two rows have one token count, so that `equal` must name one of them, where a row has no best, and where there is no
    row: the run is no check, or not of this variant."""
    from moegate._choices import config_of

    best = {}
    rows = results(store, "regret", run, variant=f"^{variant}$", **equal)
    for row in sorted((row for row in rows if row["case"]), key=lambda row: row["tokens"]):
        if row["tokens"] in best:
            raise ValueError(f"two rows of {variant} have {row['tokens']} tokens, one is {row['case']}; choose by column")
        if not row["best"] or " " in row["best"]:
            raise ValueError(f"{row['case']}: no configuration of one operator is the best, but '{row['best']}'")
        best[row["tokens"]] = config_of(row["best"])
    if not best:
        raise ValueError(f"run {run} has no row of {variant}; `moegate tune --check --module FILE` makes them")
    return best
