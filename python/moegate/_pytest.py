# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest: fixture moegate_bench, which is moegate.bench() with the test's name and parameters. Until a test
asks for it, nothing of moegate is imported but this file and what `import moegate` takes."""

import os

import pytest

_OF_MARKER = ("launch", "cache", "limit", "tolerance", "budget_s")


def pytest_addoption(parser):
    group = parser.getgroup("moegate", "moegate: times of the fixture moegate_bench")
    group.addoption("--moegate-store", metavar="FILE", help="store of the times; default: MOEGATE_DB, else none")


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "moegate(launch, cache, limit, tolerance, budget_s): defaults of moegate_bench; limit: microseconds",
    )
    config.pluginmanager.register(_Times(config), "moegate-times")


def pytest_collection_modifyitems(items):
    for item in items:
        for marker in item.iter_markers("moegate"):
            unknown = [key for key in marker.kwargs if key not in _OF_MARKER]
            if unknown or marker.args:
                named = ", ".join(map(str, unknown + list(marker.args)))
                raise pytest.UsageError(f"{item.nodeid}: marker moegate takes {', '.join(_OF_MARKER)}, not {named}")


class _Times:
    """What the session's tests found, which its summary prints. A session is a run of the store."""

    def __init__(self, config):
        self.store = config.getoption("--moegate-store") or os.environ.get("MOEGATE_DB")
        self.only_verifies = "PYTEST_XDIST_WORKER" in os.environ  # other workers disturb times
        self.lines = []

    def bench(self, fn, args, kwargs, limit):
        from moegate import _bench

        if self.only_verifies:
            os.environ["MOEGATE_BENCH"] = "off"
        timing = _bench.bench(fn, *args, store=self.store, **kwargs)
        row = [kwargs["name"], *(f"{key}={value}" for key, value in kwargs["params"].items())]
        self.lines.append(f"{' '.join(row)}: {timing}")
        if limit is not None and timing.low_us > limit:
            pytest.fail(f"{timing}: over its limit of {limit} us", pytrace=False)
        return timing

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
        return times.bench(fn, args, {**defaults, **kwargs, "name": test, "params": {**plain, **(params or {})}}, limit)

    return bench
