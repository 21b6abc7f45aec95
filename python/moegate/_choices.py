# SPDX-License-Identifier: Apache-2.0
"""Configurations of a variant: as dicts in Python, as texts "KEY=VALUE,..." in the names of variants."""

import itertools
import os

from moegate import _kernels, _versions
from moegate._problems import number

_WORDS = {"True": True, "False": False, "None": None}


def text_of(config):
    """The names in order, so that a configuration has one text. Raises ValueError for a value that a text loses."""
    text = ",".join(f"{name}={config[name]}" for name in sorted(config))
    if not config or config_of(text) != config:
        raise ValueError(
            f"configuration {config}: use names and numbers, booleans, None or words without '=' and ','"
        )
    return text


def config_of(text):
    """The dict of text_of()."""
    pairs = [part.partition("=") for part in text.split(",")]
    return {name: _WORDS[value] if value in _WORDS else number(value) for name, _, value in pairs}


def listed(variant):
    """Every combination of a dict of knobs; none where a function yields them."""
    if not isinstance(variant.knobs, dict):
        return []
    combinations = itertools.product(*variant.knobs.values())
    return [dict(zip(variant.knobs, values)) for values in combinations]


def candidates(variant, case, device):
    """The texts of all that there is to choose from in a case, each once."""
    configs = variant.knobs(case, device) if callable(variant.knobs) else listed(variant)
    return list(dict.fromkeys(text_of(config) for config in configs))


def chosen(variant, case, device):
    """The Choice of a variant in a case."""
    choice = variant.choose(case, device)
    if isinstance(choice, dict):
        choice = _kernels.Choice(choice)
    if not isinstance(choice, _kernels.Choice):
        raise TypeError(f"choose of {variant.name} returned {choice!r}; return a moegate.Choice")
    return choice


def _stale(made_with):
    """"made with triton 3.4.0, here 3.6.0" of what is another version here; empty where nothing is."""
    others = []
    for package, version in made_with.items():
        here = _versions.here(package)
        if here != version:
            others.append(f"made with {package} {version}, here {_versions.told(here)}")
    return "; ".join(others)


def _entry(choice):
    name, _ = os.path.splitext(os.path.basename(choice.file or ""))
    return ":".join(str(part) for part in (name, choice.entry) if part not in ("", None))


def told(choice, case):
    """A Choice as the worker reads it."""
    config, entry = text_of(choice.config), _entry(choice)
    tokens = getattr(case, "tokens", None)
    path = f"{choice.source} {entry}".strip()
    path += f" for {tokens} tokens" if tokens is not None else ""
    if choice.made_with:
        path += ", made with " + ", ".join(f"{name} {version}" for name, version in choice.made_with.items())
    return {
        "config": config,
        "source": choice.source,
        "entry": entry,
        "path": f"{path}: {config}",
        "stale": _stale(choice.made_with),
    }
