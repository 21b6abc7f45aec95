# SPDX-License-Identifier: Apache-2.0
"""Routing that an engine recorded, as files for `routing = replay:FOLDER/` and `load:FILE.npy`.

    python3 -m moegate.routing import routed.npy --out d        # ids [tokens, layers, k] of vLLM
    python3 -m moegate.routing import answer.json --topk 8 --out d    # responses of SGLang
    python3 -m moegate.routing import recorder_*.pt --out d     # of SGLang's recorder; needs torch

The folder gets layer_007.npy, ids [tokens, k] of logical experts, for each layer; or, of what holds
counts only, load_007.npy [experts]. Its routing.json says where they are from.
"""

import argparse
import base64
import binascii
import hashlib
import io
import json
import os
import pickle
import re
import sys

from moegate._client import (
    ENVIRONMENT,
    USAGE,
    Error,
    Once,
    Parser,
    counted,
    exit_code_of,
    import_numpy,
    make_folder,
    member,
    npy_bytes,
    one_line,
    parse_json,
    print_result,
    printable,
    read_file,
    write_file,
)

_MOST_BYTES = 4 << 30  # of a file
_RECORDER_WIDTH = 8  # of SGLang's recorder, whatever k is
_TUNING_DUMP = re.compile(r"topk_ids_layer(\d+)_idx(\d+)\.pt")


class Part:
    """What one file, one response or one forward pass recorded: per layer ids [tokens, k] or counts
    [experts]. `number`: of the pass, where it has one."""

    def __init__(self, where, engine, ids=None, counts=None, is_pass=False, number=None):
        self.where, self.engine = where, engine
        self.ids, self.counts = ids or {}, counts or {}
        self.is_pass, self.number = is_pass, number

    def is_same(self, other):
        """Ranks of TP record the same tokens."""
        same = import_numpy().array_equal
        return self.number == other.number and all(same(self.ids[n], other.ids[n]) for n in self.ids)


def _fail(where, why):
    raise Error(USAGE, f"{where}: {why}")


# ---- Files


def _whole_numbers(where, array):
    """As int64: an array of whole numbers, of any type."""
    np = import_numpy()
    array = np.asarray(array)
    if array.dtype.kind not in "iuf" or not np.array_equal(array, np.floor(array)):
        _fail(where, f"has elements of type {array.dtype}, or fractions; ids are whole numbers")
    return array.astype(np.int64)


def _load_npy(path):
    content = read_file(path, _MOST_BYTES)
    try:
        return import_numpy().load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        _fail(path, f"is no .npy file that can be read: {one_line(str(error))}")


def _load_pt(path):
    if not os.path.isfile(path):
        _fail(path, "no such file")
    try:
        import torch
    except ImportError:
        why = f"{sys.executable} has no torch, which .pt files are read with"
        raise Error(ENVIRONMENT, f"{why}; install it, or use a Python that has it") from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        _fail(path, f"cannot be read by torch.load(weights_only=True): {one_line(str(error))}")


def _by_layer(array, axis):
    return {layer: array.take(layer, axis) for layer in range(array.shape[axis])}


def _of_table(where, array, options):
    """Ids [tokens, layers, k]; or counts [layers, experts] or [steps, layers, experts], which end in
    --experts."""
    array = _whole_numbers(where, array)
    if array.ndim == 3 and array.shape[2] != options.experts:
        return Part(where, "vllm", ids=_by_layer(array, 1))
    if array.ndim in (2, 3):
        counts = array.sum(axis=0) if array.ndim == 3 else array
        return Part(where, "vllm", counts=_by_layer(counts, 0))
    axes = "ids have [tokens, layers, k], counts [layers, experts] or [steps, layers, experts]"
    _fail(where, f"has {array.ndim} dimensions; {axes}")


# ---- SGLang


def _responses(value):
    """Whatever has routed_experts in it, with what says how many tokens it has."""
    if isinstance(value, list):
        for inner in value:
            yield from _responses(inner)
    elif isinstance(value, dict):
        counts = member(value, "usage") or member(value, "meta_info") or value
        for holder in (value, member(value, "meta_info"), member(value, "sglext")):
            if isinstance(member(holder, "routed_experts"), str):
                yield holder["routed_experts"], counts
        yield from _responses(member(value, "choices"))


def _of_response(where, text, counts, options):
    np = import_numpy()
    if not options.topk:
        _fail(where, "routed_experts has no shape; give --topk K, the experts of a token")
    tokens = [member(counts, f"{what}_tokens") for what in ("prompt", "completion")]
    if not all(type(count) is int and count >= 0 for count in tokens):
        _fail(where, "says no prompt_tokens and completion_tokens beside routed_experts")
    try:
        content = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        _fail(where, "routed_experts is no base64")
    rows = sum(tokens) - 1  # the last token is not run
    if rows < 1 or len(content) % (4 * rows * options.topk) or not content:
        shape = f"{rows} tokens (of {sum(tokens)}, without the last) of {options.topk} experts"
        _fail(where, f"routed_experts has {len(content)} bytes, which are no int32 of {shape}")
    ids = np.frombuffer(content, "<i4").reshape(rows, -1, options.topk)
    return Part(where, "sglang", ids=_by_layer(ids.astype(np.int64), 1))


def _of_json(path, options):
    content = read_file(path, _MOST_BYTES)
    lines = enumerate(content.split(b"\n"), 1) if path.endswith(".jsonl") else [(0, content)]
    parts = []
    for number, line in lines:
        where = f"{path}:{number}" if number else path
        if line.strip():
            for text, counts in _responses(parse_json(where, line)):
                parts.append(_of_response(where, text, counts, options))
    return parts or _fail(path, "has no routed_experts, as a response of SGLang has")


def _logical(where, ids, physical_to_logical):
    """Ids [tokens, k] of physical experts; what lies beyond them stays: a fused shared expert."""
    np = import_numpy()
    count = len(physical_to_logical)
    inside = (ids >= 0) & (ids < count)
    return np.where(inside, physical_to_logical[np.where(inside, ids, 0)], ids)


def _of_pass(path, record, maps, options):
    number = member(record, "forward_pass_id")
    if type(number) is not int:
        _fail(path, "has a record without forward_pass_id")
    where = f"{path} pass {number}"
    ids = _whole_numbers(where, record["topk_ids_of_layer"])
    if ids.ndim != 3 or len(ids) != len(maps):
        _fail(where, f"ids have shape {list(ids.shape)}, the map has {len(maps)} layers")
    if max(options.topk or 0, ids.shape[2]) > _RECORDER_WIDTH:
        most = f"SGLang's recorder keeps {_RECORDER_WIDTH} experts of a token"
        _fail(where, f"{most}, not all {max(options.topk or 0, ids.shape[2])}; use routed_experts")
    layers = {layer: _logical(where, ids[layer], maps[layer]) for layer in range(len(ids))}
    return Part(where, "sglang", ids=layers, is_pass=True, number=number)


def _of_records(path, dump, options):
    records = [r for r in dump["records"] if member(r, "topk_ids_of_layer") is not None]
    if not records:
        _fail(path, "has no ids of tokens; record with --expert-distribution-recorder-mode per_token")
    if member(dump, "last_physical_to_logical_map") is None:
        _fail(path, "has no last_physical_to_logical_map, without which its ids say nothing")
    maps = _whole_numbers(path, dump["last_physical_to_logical_map"])
    return [_of_pass(path, record, maps, options) for record in records]


def _of_pt(path, options):
    dump = _load_pt(path)
    tuning = _TUNING_DUMP.fullmatch(os.path.basename(path))
    if isinstance(member(dump, "records"), list):
        return _of_records(path, dump, options)
    if member(dump, "logical_count") is not None:
        counts = _whole_numbers(path, dump["logical_count"])
        if counts.ndim != 3:
            _fail(path, f"logical_count has {counts.ndim} dimensions, not [steps, layers, experts]")
        return [Part(path, "sglang", counts=_by_layer(counts.sum(axis=0), 0))]
    if isinstance(dump, dict):
        names = one_line(", ".join(sorted(map(str, dump))))
        _fail(path, f"has neither records nor logical_count, but {names or 'nothing'}")
    if not tuning:
        return [_of_table(path, dump, options)]
    ids = _whole_numbers(path, dump)
    if ids.ndim != 2:
        _fail(path, f"has {ids.ndim} dimensions, not [tokens, k]")
    return [Part(path, "sglang", ids={int(tuning[1]): ids}, is_pass=True)]


def read_parts(paths, options):
    """Of all files, in the order of their names where those are of SGLang's tuning dumps."""

    def order(path):
        tuning = _TUNING_DUMP.fullmatch(os.path.basename(path))
        return (int(tuning[2]), int(tuning[1])) if tuning else (-1, 0)

    parts = []
    for path in sorted(paths, key=order):
        if path.endswith(".npy"):
            parts.append(_of_table(path, _load_npy(path), options))
        elif path.endswith((".json", ".jsonl")):
            parts += _of_json(path, options)
        elif path.endswith(".pt"):
            parts += _of_pt(path, options)
        else:
            _fail(path, "is none of .npy, .json, .jsonl and .pt")
    if len({part.engine for part in parts}) > 1:
        _fail(paths[0], "and others are of different engines; import them one by one")
    if any(part.ids for part in parts) and any(part.counts for part in parts):
        _fail(paths[0], "and others are ids and counts; import them one by one")
    return _distinct_passes(parts)


def _distinct_passes(parts):
    """Passes by their numbers, which several ranks, each with a file of its own, may have."""
    if any(part.number is None for part in parts):
        return parts
    kept = {}
    for part in sorted(parts, key=lambda part: part.number):
        of_number = kept.setdefault(part.number, [])
        if not any(part.is_same(other) for other in of_number):
            of_number.append(part)
    return [part for of_number in kept.values() for part in of_number]


# ---- What layers become


class Recording:
    """All parts, by layer. `notes`: what was left out or assumed; `starts`: first rows of forward
    passes, None where they are not known."""

    def __init__(self, parts, options):
        self.engine = parts[0].engine
        self.notes, self.left_out = [], {}
        self._experts, self._topk = options.experts, options.topk
        self.starts = None
        of_ids = any(part.ids for part in parts)
        layers = sorted({layer for part in parts for layer in part.ids or part.counts})
        self.layers = {}
        for layer in chosen_layers(options.layers, layers):
            table = self._ids(layer, parts) if of_ids else self._counts(layer, parts)
            if table is not None:
                self.layers[layer] = table
        if not self.layers:
            _fail(parts[0].where, "has no layer with routing: " + "; ".join(self.left_out.values()))
        self.is_ids = of_ids
        if of_ids:
            self._check_alike(parts)

    @property
    def topk(self):
        return next(iter(self.layers.values())).shape[1] if self.is_ids else None

    @property
    def experts(self):
        if self._experts or self.is_ids:
            return self._experts
        return len(next(iter(self.layers.values())))

    @property
    def tokens(self):
        return len(next(iter(self.layers.values()))) if self.is_ids else None

    def _ids(self, layer, parts):
        np = import_numpy()
        own = [part.ids[layer] for part in parts if layer in part.ids]
        if len({ids.shape[1] for ids in own}) > 1:
            _fail(parts[0].where, f"layer {layer}: its files have different numbers of columns")
        ids = np.concatenate(own)
        ids = ids[:, ~np.all(ids == -1, axis=0)]  # the recorder is eight wide, whatever k is
        if ids.size == 0:
            return self._leave_out(layer, "no ids: a dense layer, or not recorded")
        if not ids.any():
            why = "all ids are 0: a dense layer, or its kernel routes inside and was not captured"
            return self._leave_out(layer, why)
        if self._experts:
            ids = ids[:, ~np.all(ids >= self._experts, axis=0)]  # a fused shared expert
        self._check_ids(f"{parts[0].where} layer {layer}", ids)
        return ids

    def _check_ids(self, where, ids):
        np = import_numpy()
        most = self._experts or 1024
        outside = np.argwhere((ids < 0) | (ids >= most))
        if len(outside):
            row, column = outside[0]
            why = f"row {row}: id {ids[row, column]} is not in [0, {most})"
            _fail(where, f"{why}; --experts says how many there are without a fused shared expert")
        ordered = np.sort(ids, axis=1)
        twice = np.argwhere(ordered[:, 1:] == ordered[:, :-1])
        if len(twice):
            row, column = twice[0]
            remedy = "record it again" if self._experts else "record it again; of counts, give --experts"
            _fail(where, f"row {row}: id {ordered[row, column]} appears twice; {remedy}")
        if self._topk and ids.shape[1] != self._topk:
            _fail(where, f"has {ids.shape[1]} experts of a token, not --topk {self._topk}")

    def _check_alike(self, parts):
        """All layers have as many tokens and columns; parts that are passes have starts."""
        shapes = {ids.shape for ids in self.layers.values()}
        if len(shapes) > 1:
            shown = ", ".join(str(list(shape)) for shape in sorted(shapes))
            _fail(parts[0].where, f"layers have different shapes: {shown}; --layers selects some")
        if not self._experts:
            most = max(int(ids.max()) for ids in self.layers.values())
            self.notes.append(f"the largest id is {most}; --experts E checks that it fits")
        if all(part.is_pass for part in parts):
            layer = next(iter(self.layers))
            lengths = [len(part.ids[layer]) for part in parts if layer in part.ids]
            self.starts = [sum(lengths[:n]) for n in range(len(lengths)) if lengths[n]]
        if parts[0].is_pass and self.topk == _RECORDER_WIDTH and not self._topk:
            why = "a model with more experts of a token would look the same; --topk K checks it"
            self.notes.append(f"all {_RECORDER_WIDTH} columns are full: {why}")

    def _counts(self, layer, parts):
        own = [part.counts[layer] for part in parts if layer in part.counts]
        where = f"{parts[0].where} layer {layer}"
        if len({len(counts) for counts in own}) > 1 or len(own[0]) != (self._experts or len(own[0])):
            found = ", ".join(sorted({str(len(counts)) for counts in own}))
            _fail(where, f"has counts of {found} experts, not --experts {self._experts}")
        counts = sum(own)
        if (counts < 0).any():
            _fail(where, "has a count below 0")
        return counts if counts.any() else self._leave_out(layer, "all counts are 0")

    def _leave_out(self, layer, why):
        self.left_out[layer] = f"layer {layer}: {why}"


def chosen_layers(text, there):
    """Of "3,10-20"; all where there is no text."""
    if text is None:
        return there
    wanted = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,4})(?:-([0-9]{1,4}))?\s*", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if last < first:
            raise Error(USAGE, f"--layers '{one_line(text)}': use numbers and ranges, as 3,10-20")
        wanted += range(first, last + 1)
    absent = [layer for layer in wanted if layer not in there]
    if absent:
        known = ", ".join(map(str, there))
        raise Error(USAGE, f"--layers {one_line(text)}: there is no layer {absent[0]}; it has {known}")
    return sorted(set(wanted))


# ---- The command


def _files(recording):
    kind, start = ("<i2", "layer") if recording.is_ids else ("<i8", "load")
    return {f"{start}_{n:03}.npy": npy_bytes(table, kind) for n, table in recording.layers.items()}


def _facts(recording, files, options):
    facts = {
        "engine": recording.engine,
        "version": options.version,
        "model": options.model,
        "prompts": options.prompts,
        "experts": recording.experts,
        "topk": recording.topk,
        "tokens": recording.tokens,
        "passes": recording.starts,
        "left_out": list(recording.left_out.values()),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    return {name: value for name, value in facts.items() if value is not None}


def _import(options):
    if not options.files:
        raise Error(USAGE, "moegate.routing import: give files of recorded routing")
    if not options.out:
        raise Error(USAGE, "moegate.routing import: give --out FOLDER, for the recordings")
    recording = Recording(read_parts(options.files, options), options)
    files = _files(recording)
    make_folder(options.out)
    there = [n for n in os.listdir(options.out) if n.endswith(".npy") or n == "routing.json"]
    if there:
        why = f"has recordings already ({min(there)}), which a replay would mix with these"
        raise Error(USAGE, f"--out {options.out}: {why}; name another folder")
    for name, content in files.items():
        write_file(os.path.join(options.out, name), content)
    facts = json.dumps(_facts(recording, files, options), indent=1, ensure_ascii=False) + "\n"
    facts = re.sub(r"\n +(-?\d+)(?=[,\n])", r" \1", facts)  # lists of numbers in a line
    write_file(os.path.join(options.out, "routing.json"), facts.encode("utf-8", "replace"))
    for note in [*recording.left_out.values(), *recording.notes]:
        print_result(f"- {printable(note)}\n")
    print_result(_summary(recording, files, options.out))


def _summary(recording, files, folder):
    layers = counted(len(files), "layer")
    if not recording.is_ids:
        name = os.path.join(folder, next(iter(files)))
        return f"counts of {layers}; routing = load:{name}\n"
    passes = f", forward passes: {len(recording.starts)}" if recording.starts else ""
    tokens = f"{counted(recording.tokens, 'token')} with {counted(recording.topk, 'expert')} each"
    return f"{layers}, {tokens}{passes}; routing = replay:{folder.rstrip('/')}/\n"


def _count_of(most):
    def read(text):
        if re.fullmatch("[0-9]{1,9}", text) and 1 <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"'{one_line(text)}' is no whole number from 1 to {most}")

    return read


def _parser():
    prog, raw = "python3 -m moegate.routing", argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=prog, description=__doc__, formatter_class=raw, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    about = "Makes files for replays of what an engine recorded"
    one = commands.add_parser("import", help=about, description=about + ".", allow_abbrev=False)
    one.add_argument("files", nargs="*", metavar="FILE", help="an .npy, .json, .jsonl or .pt file")
    one.add_argument("--out", action=Once, metavar="FOLDER", help="made where it is missing")
    one.add_argument("--layers", action=Once, metavar="L", help="as 3,10-20 (default: all)")
    experts = "routed experts of a layer; a column of larger ids is a shared expert and is cut"
    one.add_argument("--experts", action=Once, metavar="E", type=_count_of(1024), help=experts)
    topk = "experts of a token; responses of SGLang need it, others are checked"
    one.add_argument("--topk", action=Once, metavar="K", type=_count_of(64), help=topk)
    for name, about in (("version", "of the engine"), ("model", "its name"), ("prompts", "which")):
        one.add_argument(f"--{name}", action=Once, metavar="T", help=f"{about}, for routing.json")
    return parser


def run(arguments):
    options = _parser().parse_args(arguments)
    if options.command is None:
        raise Error(USAGE, "moegate.routing: give a command, import; see --help")
    _import(options)


def main(arguments=None):
    return exit_code_of(run, arguments)


if __name__ == "__main__":
    sys.exit(main())
