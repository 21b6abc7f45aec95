# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest: fixture moegate_bench, which is moegate.bench() with the test's name and parameters. Until a test
asks for it, nothing of moegate is imported but this file and what `import moegate` takes."""

import json
import os
import subprocess
import sys
import tempfile

import pytest

_OF_MARKER = ("launch", "cache", "limit", "tolerance", "budget_s")
_REPEATED = "MOEGATE_TESTS"  # nodes that a session repeats of another one


def pytest_addoption(parser):
    group = parser.getgroup("moegate", "moegate: times of the fixture moegate_bench")
    group.addoption("--moegate-store", metavar="FILE", help="store of the times; default: MOEGATE_DB, else none")
    group.addoption(
        "--moegate-rounds",
        metavar="N",
        type=int,
        default=1,
        help="time the tests in N fresh processes, as a comparison needs; default: 1",
    )
    group.addoption(
        "--moegate-compare",
        metavar="RUN",
        help="fail what is slower than in this run of the store: a number, a label, latest (the one before), or the "
        "path of a baseline",
    )


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "moegate(launch, cache, limit, tolerance, budget_s): defaults of moegate_bench; limit: microseconds",
    )
    config.pluginmanager.register(_Times(config), "moegate-times")


def pytest_collection_modifyitems(config, items):
    for item in items:
        for marker in item.iter_markers("moegate"):
            unknown = [key for key in marker.kwargs if key not in _OF_MARKER]
            if unknown or marker.args:
                named = ", ".join(map(str, unknown + list(marker.args)))
                raise pytest.UsageError(f"{item.nodeid}: marker moegate takes {', '.join(_OF_MARKER)}, not {named}")
    if _REPEATED in os.environ:
        repeated = json.loads(os.environ[_REPEATED])
        others = [item for item in items if item.nodeid not in repeated]
        items[:] = [item for item in items if item.nodeid in repeated]
        config.hook.pytest_deselected(items=others)


class _Times:
    """What the session's tests found, which its summary prints. A session is a run of the store."""

    def __init__(self, config):
        self.config = config
        self.store = config.getoption("--moegate-store") or os.environ.get("MOEGATE_DB")
        self.rounds = config.getoption("--moegate-rounds")
        self.against = config.getoption("--moegate-compare")
        self.only_verifies = "PYTEST_XDIST_WORKER" in os.environ  # other workers disturb times
        self.repeats = _REPEATED in os.environ
        self.lines, self.tests = [], []
        if self.rounds < 1:
            raise pytest.UsageError(f"--moegate-rounds {self.rounds}: at least 1")
        if (self.rounds > 1 or self.against) and not self.store:
            raise pytest.UsageError("--moegate-rounds and --moegate-compare need --moegate-store")

    def bench(self, test, fn, args, kwargs, limit):
        from moegate import _bench

        if self.only_verifies:
            os.environ["MOEGATE_BENCH"] = "off"
        _bench.run_options["rounds"] = self.rounds
        timing = _bench.bench(fn, *args, store=self.store, **kwargs)
        row = [kwargs["name"], *(f"{key}={value}" for key, value in kwargs["params"].items())]
        self.lines.append(f"{' '.join(row)}: {timing}")
        if test not in self.tests:
            self.tests.append(test)
        if limit is not None and timing.low_us > limit:
            pytest.fail(f"{timing}: over its limit of {limit} us", pytrace=False)
        return timing

    def pytest_sessionfinish(self, session):
        if self.repeats or not self.tests:
            return
        from moegate import _bench

        _bench.close_sessions()
        if not _bench.runs:
            return
        done = all([self._repeat(number) for number in range(1, self.rounds)])
        if self.against:
            done = all([self._compare(run) for run in _bench.runs.values()]) and done
        if not done and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _repeat(self, number):
        """The tests once more, in a fresh interpreter. Whether they passed."""
        from moegate import _bench

        given = self.config.invocation_params
        command = [sys.executable, "-m", "pytest", *map(str, given.args)]
        if self.config.getoption("xmlpath", None):
            command.append(f"--junitxml={os.devnull}")
        environment = {**_bench.joining(number, _bench.runs), _REPEATED: json.dumps(self.tests)}
        done = subprocess.run(
            command, cwd=given.dir, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            self.lines += [f"round {number + 1} of {self.rounds} failed:", *done.stdout.splitlines()[-20:]]
        return done.returncode == 0

    def _compare(self, run):
        """What `moegate gate` says of the run. Whether nothing failed; one process alone fails nothing."""
        from moegate._results import program

        base = self._base(run)
        if not base:
            self.lines.append("nothing to compare with: the store has no earlier run of this device")
            return True
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "verdict.json")
            command = [program(), "gate", "--db", self.store, "--run", str(run), *base, "--out", out]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if not os.path.exists(out):
                self.lines.append(done.stderr.strip())
                return False
            with open(out, encoding="utf-8") as file:
                verdict = json.load(file)
        self.lines.append(verdict["sentence"])
        for row in verdict["cases"]:
            if row["outcome"] not in ("pass", "identical"):
                self.lines.append(f"{row['outcome']}: {row['key']}: {row['why']}")
        return self.rounds == 1 or done.returncode in (0, 20)

    def _base(self, run):
        """The options of `moegate gate` for what is compared with; none where there is no earlier run."""
        if os.path.exists(self.against):
            return ["--baselines", self.against]
        if self.against != "latest":
            return ["--against", self.against]
        import sqlite3

        with sqlite3.connect(self.store) as store:
            (found,) = store.execute(
                "SELECT max(run.run_id) FROM run JOIN tag ON tag.run_id = run.run_id AND tag.name = 'inprocess' "
                "JOIN run own ON own.run_id = ? WHERE run.run_id < own.run_id AND run.device_id = own.device_id",
                (run,),
            ).fetchone()
        return ["--against", str(found)] if found else []

    def pytest_terminal_summary(self, terminalreporter):
        if self.lines:
            terminalreporter.section("moegate")
            for line in self.lines:
                terminalreporter.write_line(line)


@pytest.fixture
def moegate_bench(request):
    """moegate.bench() whose row has the test's name and parameters; `name` tells several calls of a test apart."""
    times = request.config.pluginmanager.get_plugin("moegate-times")
    node = request.node
    markers = list(node.iter_markers("moegate"))
    defaults = {key: value for marker in reversed(markers) for key, value in marker.kwargs.items()}
    limit = defaults.pop("limit", None)
    parameters = node.callspec.params if hasattr(node, "callspec") else {}
    plain = {key: value for key, value in parameters.items() if isinstance(value, (int, float, str))}

    def bench(fn, *args, name=None, params=None, **kwargs):
        test = node.nodeid.split("[")[0] + (f":{name}" if name else "")
        stated = {**defaults, **kwargs, "name": test, "params": {**plain, **(params or {})}}
        return times.bench(node.nodeid, fn, args, stated, limit)

    return bench
