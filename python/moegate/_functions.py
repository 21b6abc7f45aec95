# SPDX-License-Identifier: Apache-2.0
"""`moegate run FILE.py:FUNCTION [--against FILE.py:FUNCTION]`: times functions that belong to no operator. Every round
is a fresh interpreter, which measures both in turn; report summary of the stored run compares them.

FUNCTION's file may define

    arguments   what the functions are called with: a tuple, or {case: tuple}, or a function that returns one of these.
                A case called "tokens=8,hidden=64" has these parameters. Default: nothing.
    reference   a function of the same arguments, which returns what is right. Default: the function of --against."""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import traceback

from moegate import _bench
from moegate._results import program

_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0}


def _time(text):
    found = re.fullmatch(r"([0-9.]+)(ms|s|min)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no time; a time is a number with a unit, as in 500ms, 2s, 5min")
    return float(found[1]) * _UNITS[found[2]]


def _place(text):
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"'{text}' is not FILE.py:FUNCTION")
    if not os.path.exists(file):
        raise argparse.ArgumentTypeError(f"there is no file {file}")
    return os.path.abspath(file), name


def _options(argv):
    parser = argparse.ArgumentParser(prog="moegate run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("function", type=_place, metavar="FILE.py:FUNCTION")
    parser.add_argument("--against", type=_place, metavar="FILE.py:FUNCTION", help="what it replaces")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="fresh processes (default: 3)")
    parser.add_argument("--db", default="out/results.sqlite", metavar="FILE", help="the store (default: %(default)s)")
    parser.add_argument("--budget", type=_time, default=0.5, metavar="TIME", help="of a function (default: 500ms)")
    parser.add_argument("--cache", choices=("cold", "warm"), default="cold", help="(default: cold)")
    parser.add_argument("--launch", choices=("stream", "graph"), default="stream", help="(default: stream)")
    parser.add_argument("--round", type=int, help=argparse.SUPPRESS)  # what a fresh process measures
    options = parser.parse_args(argv)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: at least 1")
    if options.against == options.function:
        parser.error("--against names the function itself")
    return options


def _refuse(why):
    print(f"moegate: {why}", file=sys.stderr)
    raise SystemExit(2)


def _module_of(file):
    name = f"moegate_functions_{pathlib.Path(file).stem}"
    if name not in sys.modules or sys.modules[name].__file__ != file:
        sys.path.insert(0, os.path.dirname(file))
        spec = importlib.util.spec_from_file_location(name, file)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except Exception:
            traceback.print_exc()
            _refuse(f"{file} cannot be imported by {sys.executable}; MOEGATE_PYTHON names another Python")
    return sys.modules[name]


def _function_of(place):
    file, name = place
    try:
        return getattr(_module_of(file), name)
    except AttributeError:
        _refuse(f"{file} has no function '{name}'")


def _cases(module):
    """(parameters, arguments) of each case."""
    given = getattr(module, "arguments", ())
    given = given() if callable(given) else given
    for case, arguments in given.items() if isinstance(given, dict) else [("", given)]:
        parts = [part.partition("=") for part in case.split(",")]
        stated = all(value for _, _, value in parts)
        yield ({name: value for name, _, value in parts} if stated else {"case": case} if case else {}), arguments


def _names(options):
    """What the two are called in the store: by their functions, or with their files where these are called alike."""
    places = [place for place in (options.function, options.against) if place]
    names = [name for _, name in places]
    if len(set(names)) < len(places):
        names = [f"{pathlib.Path(file).stem}.{name}" for file, name in places]
    return names


def _measure(options):
    """One round, in this process. Returns the runs of the store by device."""
    names = _names(options)
    _bench.run_options.update(rounds=options.rounds, before=names[-1], label=names[0])
    functions = [_function_of(place) for place in (options.function, options.against) if place]
    module = _module_of(options.function[0])
    reference = getattr(module, "reference", None)
    for params, arguments in _cases(module):
        sides = [(names[0], functions[0], reference or (functions[1] if options.against else None))]
        if options.against:
            sides.append((names[1], functions[1], reference))
        for variant, function, truth in sides if options.round % 2 == 0 else reversed(sides):
            try:
                timing = _bench.bench(
                    function,
                    *arguments,
                    name=names[0],
                    variant=variant,
                    params=params,
                    reference=truth,
                    cache=options.cache,
                    launch=options.launch,
                    budget_s=options.budget,
                    store=options.db,
                )
            except _bench.Wrong as error:
                print(f"moegate: wrong: {variant} {params or ''}: {error}", file=sys.stderr)
                raise SystemExit(11) from None
            print(f"round {options.round + 1}: {variant} {params or ''}: {timing}", file=sys.stderr)
    return _bench.runs


def main(argv):
    options = _options(argv)
    if options.round is not None:
        print(json.dumps(_measure(options)))
        return 0
    os.makedirs(os.path.dirname(options.db) or ".", exist_ok=True)
    runs = {}
    for number in range(options.rounds):
        done = subprocess.run(
            [sys.executable, "-m", "moegate._functions", *argv, "--round", str(number)],
            env=_bench.joining(number, runs),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return done.returncode
        runs = json.loads(done.stdout.splitlines()[-1])
    for run in runs.values():
        subprocess.run([program(), "report", "summary", "--db", options.db, "--run", str(run)], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
