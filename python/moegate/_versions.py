# SPDX-License-Identifier: Apache-2.0
"""Versions of packages, as this Python has them and as a variant wants them."""

import operator
import re

_COMPARISONS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def here(package):
    """The installed version, or None. "python": that of the interpreter."""
    import importlib.metadata  # takes its time, and few variants require anything
    import platform

    if package == "python":
        return platform.python_version()
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def told(version):
    """As it stands behind "here"."""
    return version or "not installed"


def _numbers(version):
    """The release, without zeros at its end: 2.8.0rc1+cu128 is (2, 8)."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in release.group().split(".")] if release else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def _conditions(package, wanted):
    """The pairs of comparison and numbers of ">=0.11, !=0.12"."""
    conditions = []
    for part in filter(None, map(str.strip, wanted.split(","))):
        stated = re.fullmatch(r"([<>=!]=|[<>])\s*(\d+(?:\.\d+)*)", part)
        if not stated:
            known = ", ".join(_COMPARISONS)
            raise ValueError(f"requires {package} '{part}': use {known} and numbers, with commas in between")
        conditions.append((_COMPARISONS[stated.group(1)], _numbers(stated.group(2))))
    return conditions


def unmet(requires):
    """"needs vllm >=0.11, here 0.9.2" of each package that is absent or of another version; empty: there is none.
    `requires`: {package: conditions}, any version where there are none. Raises ValueError for others."""
    faults = []
    for package, wanted in (requires or {}).items():
        conditions, version = _conditions(package, wanted), here(package)
        if version is None or not all(compare(_numbers(version), wish) for compare, wish in conditions):
            faults.append(f"needs {package} {wanted}".rstrip() + f", here {told(version)}")
    return "; ".join(faults)
