# SPDX-License-Identifier: Apache-2.0
"""Traces of FlashInfer-Bench: results of a store as traces, and workloads of a data set as a suite.

    python3 -m moegate.flashinfer export flashinfer-trace --out traces.jsonl
    python3 -m moegate.flashinfer import flashinfer-trace flashinfer-trace/ --out suites

It reads a store and measures nothing. What the other side has no place for is named. In a clone,
or in the folder of an installation, PYTHONPATH names its folder python/. Each command has --help.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import re
import sqlite3
import struct
import sys
import urllib.parse
from collections import Counter, namedtuple
from difflib import get_close_matches

from moegate._client import (
    COVERAGE,
    STORE,
    USAGE,
    Error,
    Once,
    Parser,
    check_output,
    clipped,
    counted,
    exit_code_of,
    import_numpy,
    is_count,
    make_folder,
    member,
    npy_bytes,
    one_line,
    parse_json,
    print_result,
    printable,
    read_file,
    say,
    valid_text,
    write_file,
)
from moegate._formats import decode


def _count_leaves(value, path, counts):
    """How often each field was there, by its path: "evaluation.environment.libs.cuda", "tags[]"."""
    longest = 200  # names of any length, each within the one before
    if len(path) > longest:
        counts[path[:longest] + "..."] += 1
    elif isinstance(value, dict):
        for name, inner in value.items():
            _count_leaves(inner, f"{path}.{name}" if path else name, counts)
    elif isinstance(value, list):
        for inner in value:
            _count_leaves(inner, path + "[]", counts)
    elif value is not None:  # which says nothing
        counts[path] += 1


# ---- Tensors. A file of safetensors: 8 bytes, the header's length; the header, a JSON object that
# gives each tensor its dtype, shape and data_offsets, counted from the header's end; the tensors'
# bytes, row-major. "__metadata__" is none.

_LONGEST_HEADER, _MOST_ELEMENTS = 16 << 20, 1 << 26
_NUMBERS = {"F32": "<f4", "F64": "<f8", "BF16": "<u2", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
_NUMBERS.update({"I16": "<i2", "I8": "<i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1"})


def read_safetensors(path, content, name):
    """The tensor called `name`, in float64."""
    np = import_numpy()

    def fail(why):
        remedy = "save it again, for example with safetensors.torch.save_file"
        raise Error(USAGE, f"'{path}' {why}; {remedy}")

    if len(content) < 8:
        fail("is too short for a safetensors file")
    (length,) = struct.unpack_from("<Q", content)
    if length > _LONGEST_HEADER or length > len(content) - 8:
        fail(f"is no safetensors file, or truncated: its header would have {length} bytes")
    header = parse_json(path, content[8 : 8 + length])
    tensor = member(header, name)
    if not isinstance(tensor, dict) or name == "__metadata__":
        known = set(header) - {"__metadata__"} if isinstance(header, dict) else ()
        names = ", ".join(sorted(known))
        fail(f"has no tensor '{name}'; it has {clipped(one_line(names), 200) or 'none'}")
    dtype, shape, offsets = (tensor.get(field) for field in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in _NUMBERS:
        said = one_line(dtype) if isinstance(dtype, str) else "unknown"
        fail(f"has a tensor '{name}' of type {said}, which is not read here")
    if not isinstance(shape, list):
        fail(f"has a tensor '{name}' without a shape")
    if not all(is_count(extent, _MOST_ELEMENTS) for extent in shape):
        fail(f"has a tensor '{name}' without a shape, or a huge one")
    count = math.prod(shape)
    if count > _MOST_ELEMENTS:
        fail(f"has a tensor '{name}' of more than {_MOST_ELEMENTS} elements")
    data, kind = content[8 + length :], np.dtype(_NUMBERS[dtype])
    pair = isinstance(offsets, list) and len(offsets) == 2
    pair = pair and all(is_count(at, len(data)) for at in offsets)
    if not pair or offsets[1] - offsets[0] != count * kind.itemsize:
        fail(f"is truncated or damaged: tensor '{name}' has no {count * kind.itemsize} bytes")
    elements = np.frombuffer(data, kind, count, offsets[0] if count else 0).reshape(shape)
    with np.errstate(invalid="ignore"):  # of a NaN that signals
        return (decode(elements, "bf16") if dtype == "BF16" else elements).astype(np.float64)


def tensors_below(root):
    """Reads tensor `key` of a file by a path that a workload names. None: the path leads out of the
    folder, or to no file, or Git LFS has not fetched it."""
    last = (None, b"")  # logits and bias of a workload are in one file

    def read(path, key):
        nonlocal last
        inside = os.path.normpath(path)
        file = os.path.join(root, inside)
        if os.path.isabs(inside) or inside.split("/")[0] == ".." or not os.path.isfile(file):
            return None
        if last[0] != file:
            last = (file, read_file(file, 256 << 20))
        if last[1].startswith(b"version https://git-lfs"):
            return None
        return read_safetensors(file, last[1], key)

    return read


# ---- A case in the schema, and back. There a definition is a kernel with its constant sizes, which
# whoever measures gives axes; here both are one key. Every parameter stands in the definition's
# name but tokens and seed, which differ from launch to launch of one model's layer: the schema has
# no place for texts such as a routing.

_OWN = "moegate."
_LAUNCH_TO_LAUNCH = ("tokens", "seed")
_LARGEST = (1 << 63) - 1


def _encoded(text):
    """What is no letter, digit, '-', '_' or '.' becomes %XX, so that the name can be a file's."""
    plain = re.compile(rb"[^A-Za-z0-9_.-]")
    return plain.sub(lambda byte: b"%%%02X" % byte[0][0], text.encode()).decode()


def _decoded(text):
    """None for what _encoded() does not write."""
    if not re.fullmatch(r"([A-Za-z0-9_.-]|%[0-9A-Fa-f]{2})*", text):
        return None
    return urllib.parse.unquote(text, errors="surrogateescape")


_BLANKS = " \t\r\n"


def _split_list(text):
    return [part.strip(_BLANKS) for part in text.split(",")]


def trace_case(key):
    """(definition, axes, scalars) of a case's key: every parameter that is a whole number from 0 is
    an axis."""
    op, _, params = key.partition("/")
    definition, axes, scalars = _OWN + _encoded(op), {}, {}
    for param in _split_list(params) if params else []:
        name, _, value = param.partition("=")
        # As it would be written again.
        whole = re.fullmatch("0|[1-9][0-9]{0,18}", value) and int(value) <= _LARGEST
        if whole:
            axes[name] = int(value)
        elif re.fullmatch(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", value):
            scalars[name] = float(value)
        if not (whole and name in _LAUNCH_TO_LAUNCH):
            definition += f",{_encoded(name)}={_encoded(value)}"
    finite = {name: value for name, value in sorted(scalars.items()) if math.isfinite(value)}
    return definition, dict(sorted(axes.items())), finite


def case_of_trace(definition, axes):
    """Back to (op, params); None for a name that trace_case() does not make, or that contradicts
    the axes."""
    if not definition.startswith(_OWN):
        return None
    op, *parts = _split_list(definition[len(_OWN) :])
    op, params = _decoded(op), {}
    for part in parts:
        name, equals, value = part.partition("=")
        name, value = _decoded(name), _decoded(value)
        if not equals or name is None or value is None or name in params:
            return None
        params[name] = value
    for name, value in axes.items():
        if name not in params and name not in _LAUNCH_TO_LAUNCH:
            return None
        if params.setdefault(name, str(value)) != str(value):
            return None
    return (op, params) if op else None


# ---- Cases as a .suite file


def fault_of_case(op, params):
    """Why a suite cannot say this, in one clause; empty when it can."""
    word, value = "[A-Za-z0-9_-]+", "[^,#\x00-\x1f\x7f]+"
    if not re.fullmatch(word, op):
        return f"'{op}' is no name of an operator"
    for name, text in sorted(params.items()):
        if not re.fullmatch(word, name) or name == "op":
            return f"'{name}' is no name of a parameter"
        if not re.fullmatch(value, text) or text != text.strip(_BLANKS):
            return f"{name} = '{text}' is no value that a suite can hold"
    return ""


def _by_number(text):
    """A key that puts 8 before 16."""
    parts = re.findall("[0-9]+|[^0-9]", text)
    numbers = [(part.lstrip("0") or "0") if part[0] in "0123456789" else "" for part in parts]
    return [(ord(p[0]) if not n else ord("0"), len(n), n) for p, n in zip(parts, numbers)], text


class SuiteText:
    """Cases on their way into a file: those that differ in their tokens alone share a section."""

    def __init__(self):
        self._sections = {}  # by content: what the section is named by, and its tokens

    @property
    def cases(self):
        return sum(max(1, len(tokens)) for _, tokens in self._sections.values())

    def add(self, source, op, params):
        """A case that fault_of_case() has nothing against; one that is there already changes
        nothing. `source`: the operator itself, or what a comment then names."""
        but_tokens = tuple(sorted((n, v) for n, v in params.items() if n != "tokens"))
        content = (op, but_tokens, "tokens" in params)
        _, tokens = self._sections.setdefault(content, (source, []))
        if "tokens" in params and params["tokens"] not in tokens:
            tokens.append(params["tokens"])

    def text(self, about):
        """In the order in which the sections began."""
        text, taken = f"# {one_line(about)}\n", set()
        for (op, params, _), (source, tokens) in self._sections.items():
            text += f"\n[{self._name(source, op, taken)}]\n"
            text += f"# {one_line(source)}\n" if source != op else ""
            text += f"op = {op}\n"
            text += f"tokens = {', '.join(sorted(tokens, key=_by_number))}\n" if tokens else ""
            text += "".join(f"{name} = {value}\n" for name, value in params)
        return text

    @staticmethod
    def _name(source, op, taken):
        start = source.encode("utf-8", "surrogateescape")[:100]
        name = re.sub(rb"[^A-Za-z0-9_-]", b"-", start).decode() + (f"-{op}" if source != op else "")
        unique = name
        number = 2
        while unique in taken:
            unique, number = f"{name}-{number}", number + 1
        taken.add(unique)
        return unique


# ---- Which experts a recorded router chose


def _largest(values, count):
    """Indices of the largest in each row, in descending order; of equal ones the lower first."""
    np = import_numpy()
    return np.argsort(-values, axis=-1, kind="stable")[..., :count]


def chosen_experts(layer, logits, bias=None):
    """The experts [tokens, topk] by logits [tokens, experts] and bias [experts], best first. A tie
    goes to the lower expert, and what is no number is chosen last, as topk_sort has it."""
    np = import_numpy()
    scores = logits
    with np.errstate(over="ignore", invalid="ignore"):
        if layer.scoring == "noaux_tc":
            scores = 1 / (1 + np.exp(-logits)) + (0 if bias is None else bias)
        scores = np.where(np.isnan(scores), -np.inf, scores)
        if layer.scoring == "noaux_tc" and layer.groups > 1:
            # The groups stay whose two best scores have the largest sums.
            grouped = scores.reshape(len(scores), layer.groups, -1)
            sums = np.sort(grouped, axis=-1)[..., -2:].sum(axis=-1)
            sums = np.where(np.isnan(sums), -np.inf, sums)
            kept = np.zeros(sums.shape, bool)
            np.put_along_axis(kept, _largest(sums, layer.topk_groups), True, axis=-1)
            scores = np.where(kept[..., None], grouped, -np.inf).reshape(scores.shape)
    return _largest(scores, layer.topk)


def fault_of_routing(ids, experts):
    """Why the table is no routing of so many experts, in one clause; empty when it is."""
    for row, chosen in enumerate(ids.tolist()):
        seen = set()
        for expert in chosen:
            if not 0 <= expert < experts:
                return f"row {row}: id {expert} is not in [0, {experts})"
            if expert in seen:
                return f"row {row}: id {expert} appears twice"
            seen.add(expert)
    return ""


# ---- What a definition is here: an MoE layer, whose parts are operators.
# - topk_sort, where its name says `ds_routing` or `renorm` and it has routing_logits
# - moe_gate_up and moe_down, where the weights are bf16, or fp8 with a scale factor for each 128 x
#   128
# - fused_moe, where they are fp8
# A share of the experts is a rank's: `rank = r/N`.

_MOST_TOKENS, _MOST_EXPERTS, _MOST_CHOICES = 65536, 1024, 16
_SCALE_GROUP = 128  # of fp8 scale factors
_LOGITS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}

# What a suite says of it; `rank`: of a layer that has a share of the experts.
Routing = namedtuple("Routing", "spec rank", defaults=("uniform", ""))


class Layer:
    """One definition; `why`, in one clause, where it is no MoE layer with a part that has an
    operator."""

    def __init__(self, definition):
        self.read = {"name", "op_type", "type"}  # of the definition, as field paths
        self.lacking = []  # parts that have no operator, in one clause each
        self.scoring = ""  # of topk_sort; empty: its definition does not name one that is there
        self.dtype = ""  # of the products: "fp8", "bf16"; empty: of no operator that is there
        self.logits = self.ids = ""  # inputs that hold them; empty: there is none
        self._definition = definition if isinstance(definition, dict) else {}
        self.name = self._definition.get("name")
        self.why = self._read()

    def _read(self):
        kind = self._definition.get("op_type", self._definition.get("type"))
        if not isinstance(self.name, str) or kind != "moe":
            return "it is no MoE layer"
        if not self._find_tokens_axis():
            return "it has not one axis that workloads give, but none or several"
        self._read_sizes()
        if min(self.experts, self.topk, self.hidden, self.inter) < 1:
            return "it names no number of experts, of choices, hidden or inner size"
        why = self._impossible_sizes()
        if why:
            return why
        self._read_routing()
        self._read_products()
        return "" if self.scoring or self.dtype else "; ".join(self.lacking)

    def _part(self, kind, name, field):
        """A field of an axis or an input, which is then read."""
        value = member(member(self._definition.get(kind), name), field)
        if value is not None:
            self.read.add(f"{kind}.{name}.{field}" + ("[]" if isinstance(value, list) else ""))
        return value

    def _find_tokens_axis(self):
        axes = self._definition.get("axes")
        names = axes if isinstance(axes, dict) else ()
        found = [name for name in names if self._part("axes", name, "type") == "var"]
        self.tokens_axis = found[0] if found else ""
        return len(found) == 1

    def _size(self, *names):
        """Of the first axis that is there; 0: none is, or it is no size."""
        for name in names:
            value = self._part("axes", name, "value")
            if value is not None:
                return value if is_count(value, 1 << 24) else 0
        return 0

    def _size_in_name(self, mark):
        """What the name says, "topk8" for example: older definitions say it nowhere else."""
        digits = re.match("[0-9]*", self.name.partition(mark)[2])[0]
        return int(digits) if 0 < len(digits) < 19 else 0

    def _read_sizes(self):
        experts, local = self._size("num_experts"), self._size("num_local_experts")
        self.experts, self.local = experts or local, local or experts  # of the layer, of the rank
        self.topk = self._size("top_k", "topk") or self._size_in_name("_topk")
        self.groups = self._size("n_group") or self._size_in_name("_ng") or 1
        self.topk_groups = self._size("topk_group") or self._size_in_name("_kg") or 1
        self.hidden = self._size("hidden_size", "hidden_dim")
        self.inter = self._size("intermediate_size", "intermediate_dim")

    def _impossible_sizes(self):
        most = min(self.experts, _MOST_EXPERTS)
        if max(self.experts, self.local, self.topk) > most or self.topk > _MOST_CHOICES:
            rank = f"{self.experts} experts, {self.local} of them of the rank"
            return f"{rank}, and {self.topk} chosen are not what an operator takes"
        width = self.experts // self.groups if self.experts % self.groups == 0 else 0
        enough = self.topk_groups <= self.groups and self.topk <= self.topk_groups * width
        if self.groups == 1 or (width > 1 and enough):
            return ""
        return f"{self.topk_groups} of {self.groups} groups do not fit {self.experts} experts"

    def _dtype(self, name):
        dtype = self._part("inputs", name, "dtype")
        return dtype if isinstance(dtype, str) else ""

    def _dimensions(self, name):
        shape = self._part("inputs", name, "shape")
        return len(shape) if isinstance(shape, list) else 0

    def _read_routing(self):
        self.ids = "topk_ids" if self._dimensions("topk_ids") == 2 else ""
        self.logits = "routing_logits" if self._dimensions("routing_logits") == 2 else ""
        self.logits_dtype = _LOGITS.get(self._dtype(self.logits))
        if self.logits_dtype is None or self.experts < 2:
            self.lacking.append("topk_sort: it has no routing_logits")
        elif "_ds_routing" in self.name:
            self.scoring = "noaux_tc"
        elif "_renorm" in self.name:
            self.scoring = "topk_softmax"
        else:
            self.lacking.append("topk_sort: its name says neither ds_routing nor renorm")

    def _read_products(self):
        inputs = self._definition.get("inputs")
        weights = "w1" if member(inputs, "w1") is not None else "gemm1_weights"
        dtype = self._dtype(weights)
        fp8 = dtype in ("float8_e4m3fn", "float8_e4m3")
        blocks = fp8 and self._dimensions("gemm1_weights_scale") == 3
        scales = self._size("num_hidden_blocks")
        if blocks and scales in (0, self.hidden / _SCALE_GROUP):
            self.dtype = "fp8"
        elif dtype == "bfloat16" and self._dimensions(weights) == 3:
            self.dtype = "bf16"
        if self.dtype and self.experts % self.local:
            self.dtype = ""
            why = f"{self.local} of {self.experts} experts are no rank's even share"
            self.lacking.append(f"fused_moe, moe_gate_up, moe_down: {why}")
        elif not self.dtype:
            such = " in such blocks" if blocks else " with such scale factors" if fp8 else ""
            why = f"none has weights of {dtype or 'an unknown type'}{such}"
            self.lacking.append(f"fused_moe, moe_gate_up, moe_down: {why}")

    def cases(self, tokens, scale, routing, faults):
        """[(op, params)] of the layer that so many tokens reach. `scale` is the factor on routing
        weights. What an operator does not take is left out and named in `faults`."""
        cases = []

        def add(op, params):
            fault = self._fault_of_part(op, params["tokens"])
            if fault:
                faults.append(fault)
            else:
                cases.append((op, {name: str(value) for name, value in params.items()}))

        if self.scoring:
            add("topk_sort", self._router(tokens, scale, routing.spec))
        if self.dtype:
            products = self._products(tokens, routing)
            if self.dtype == "fp8":
                add("fused_moe", products)
            else:
                products["dtype"] = self.dtype
            add("moe_gate_up", products)
            add("moe_down", products)
        return cases

    def _fault_of_part(self, op, tokens):
        if not 1 <= tokens <= _MOST_TOKENS:
            return f"{op} with {tokens} tokens left out: it takes 1 to {_MOST_TOKENS}"
        sizes = {"moe_gate_up": [self.hidden], "moe_down": [self.inter], "topk_sort": []}
        odd = any(size % _SCALE_GROUP for size in sizes.get(op, [self.hidden, self.inter]))
        if self.dtype == "bf16" or not odd:
            return ""
        shape = f"hidden = {self.hidden}, inter = {self.inter}"
        return f"{op} with {shape} left out: it takes multiples of {_SCALE_GROUP}"

    def _router(self, tokens, scale, spec):
        params = {"tokens": tokens, "experts": self.experts, "topk": self.topk}
        params.update(hidden=self.hidden, scoring=self.scoring)
        if self.scoring == "noaux_tc" and self.groups > 1:
            params.update({"groups": self.groups, "topk-groups": self.topk_groups})
        if scale != 1:
            params["scale"] = re.sub(r"\.0$", "", repr(scale))
        if self.logits_dtype != "fp32":
            params["dtype"] = self.logits_dtype
        if spec != "uniform":
            params["routing"] = spec
        return params

    def _products(self, tokens, routing):
        params = {"tokens": tokens, "experts": self.experts, "topk": self.topk}
        params.update(hidden=self.hidden, inter=self.inter)
        if routing.rank:
            params["rank"] = routing.rank
        return {**params, "routing": routing.spec} if routing.spec != "uniform" else params


# ---- Workloads of traces

Input = namedtuple("Input", "kind value path key")  # value: of a scalar; path, key: of safetensors
Workload = namedtuple("Workload", "definition axes inputs")


def _read_input(given):
    texts = {name: member(given, name) for name in ("type", "path", "tensor_key")}
    kind, path, key = (text if isinstance(text, str) else "" for text in texts.values())
    if kind == "safetensors" and not (path and key):
        kind = ""
    value = member(given, "value")
    number = kind == "scalar" and type(value) in (int, float)
    return Input(kind, float(value) if number else None, path, key)


def read_trace(where, trace):
    """The workload of a trace; its result is not read."""

    def required(of, name, kind, what):
        value = member(of, name)
        if not isinstance(value, kind):
            why = "is no trace of FlashInfer-Bench's schema"
            raise Error(USAGE, f"{where}: {why}: it has no '{name}' that is {what}")
        return value

    workload = required(trace, "workload", dict, "an object")
    axes = required(workload, "axes", dict, "an object")
    inputs = required(workload, "inputs", dict, "an object")
    definition = required(trace, "definition", str, "a text")
    for name, value in sorted(axes.items()):
        if not is_count(value, 1 << 53):
            why = f"axis '{one_line(name)}' of the workload is no whole number from 0"
            raise Error(USAGE, f"{where}: {why}")
    inputs = {name: _read_input(given) for name, given in inputs.items()}
    return Workload(definition, dict(sorted(axes.items())), inputs)


class Recorder:
    """What workloads recorded of their routers, as files for `routing = replay:`. `folder`: what a
    suite says before the name of one."""

    EVEN = "; imported with routing = uniform"

    def __init__(self, folder, tensors):
        self._folder, self._tensors = folder, tensors
        # By name, which is of the content: the same routing is the same case everywhere.
        self.recordings = {}

    @staticmethod
    def _mark(name, fields, read):
        read.update(f"workload.inputs.{name}.{field}" for field in fields)

    def scale_of(self, workload, read):
        """The factor on routing weights; 1 where the workload gives none that topk_sort takes."""
        name = "routed_scaling_factor"
        given = workload.inputs.get(name)
        if not given or given.value is None or not 1e-6 <= given.value <= 1e6:
            return 1.0
        self._mark(name, ("type", "value"), read)
        return given.value

    def routing_of(self, layer, workload, tokens, read, faults):
        """As recorded, where that can be read; else even, and `faults` says why. `read` gets the
        fields that were."""
        ids = self._read_ids(layer, workload, tokens, read, faults) if tokens > 0 else None
        spec = "uniform" if ids is None else self._keep(ids)
        return Routing(spec, self._rank_of(layer, workload, read, faults))

    def _rank_of(self, layer, workload, read, faults):
        if layer.local == layer.experts or not layer.dtype:
            return ""
        name, ranks = "local_expert_offset", layer.experts // layer.local
        offset = workload.inputs.get(name)
        if not offset or offset.value not in range(0, layer.experts, layer.local):
            faults.append(f"{name} is no rank's first expert: imported with rank = busiest/{ranks}")
            return f"busiest/{ranks}"
        self._mark(name, ("type", "value"), read)
        return f"{int(offset.value) // layer.local}/{ranks}"

    def _read_ids(self, layer, workload, tokens, read, faults):
        inputs = workload.inputs
        recorded = {name: given for name, given in inputs.items() if given.kind == "safetensors"}
        if layer.ids in recorded:
            return self._read_chosen(layer, recorded[layer.ids], tokens, read, faults)
        if layer.logits not in recorded:
            return None
        if not layer.scoring:
            faults.append(f"{layer.logits} cannot be routed by an unknown rule{self.EVEN}")
            return None
        shape = (tokens, layer.experts)
        logits = self._read(layer.logits, recorded[layer.logits], shape, read, faults)
        bias, name = None, "routing_bias"
        if logits is not None and layer.scoring == "noaux_tc" and name in recorded:
            bias = self._read(name, recorded[name], shape[1:], read, faults)
            if bias is None:
                return None
        elif logits is not None and layer.scoring == "noaux_tc" and name in inputs:
            faults.append("routing_bias is not recorded: taken as 0")
        return None if logits is None else chosen_experts(layer, logits, bias)

    def _read_chosen(self, layer, given, tokens, read, faults):
        ids = self._read(layer.ids, given, (tokens, layer.topk), read, faults)
        if ids is None:
            return None
        np = import_numpy()
        if not (np.all(np.abs(ids) < 1e15) and np.all(ids == np.floor(ids))):
            fault = "it has fractions"
        else:
            ids = ids.astype(np.int64)
            fault = fault_of_routing(ids, layer.experts)
        if not fault:
            return ids
        faults.append(f"{layer.ids} is no routing: {fault}{self.EVEN}")
        return None

    def _read(self, name, given, shape, read, faults):
        self._mark(name, ("type", "path", "tensor_key"), read)
        tensor = self._tensors(given.path, given.key)
        if tensor is not None and tensor.shape == shape:
            return tensor
        why = "is in a file that is not there"
        if tensor is not None:
            why = f"has shape {list(tensor.shape)}, not {list(shape)}"
        faults.append(f"{name} {why}{self.EVEN}")
        return None

    def _keep(self, ids):
        content = npy_bytes(ids)
        name = f"routing-{hashlib.sha256(content).hexdigest()[:12]}.npy"
        self.recordings[name] = content
        return f"replay:{self._folder}/{name}"


# ---- The import

_LONGEST_SUITE, _MOST_CASES = 1 << 20, 100000  # limits of harness/campaign/suite.cc

# `text` of the .suite file, empty without cases; `recordings`: name of a file for replay: -> its
# bytes.
Imported = namedtuple("Imported", "text cases recordings notes")


class _Traces:
    """Of one definition."""

    def __init__(self):
        self.workloads, self.seen = [], set()
        self.fields, self.statuses = Counter(), Counter()


class TraceImport:
    """Workloads of traces as a suite. What a suite cannot say is in the notes, with how often it
    was there."""

    def __init__(self):
        self._definitions = {}  # name -> (path, JSON)
        self._traces = {}  # by definition
        self._solutions = self._others = 0

    def add(self, path, content):
        """A file: `.jsonl` has a trace in each line, `.json` a definition, a solution or a trace.
        Keeps of traces what differs."""
        if not path.endswith(".jsonl"):
            self._add_document(path, parse_json(path, content))
            return
        for number, line in enumerate(content.split(b"\n"), 1):
            if line.strip(_BLANKS.encode()):
                where = f"{path}:{number}"
                self._add_trace(where, parse_json(where, line))

    def _add_document(self, where, document):
        has = set(document) if isinstance(document, dict) else set()
        if "workload" in has:
            self._add_trace(where, document)
        elif {"axes", "inputs", "outputs"} <= has:
            self._add_definition(where, document)
        elif "sources" in has:
            self._solutions += 1
        else:
            self._others += 1

    def _add_definition(self, where, definition):
        name = definition.get("name")
        if not isinstance(name, str):
            raise Error(USAGE, f"{where}: is a definition without a name")
        first, known = self._definitions.setdefault(name, (where, definition))
        if known != definition:
            otherwise = f"which {first} defines otherwise; import one of them"
            raise Error(USAGE, f"{where}: defines '{one_line(name)}', {otherwise}")

    def _add_trace(self, where, trace):
        workload = read_trace(where, trace)
        traces = self._traces.setdefault(workload.definition, _Traces())
        content = {name: value for name, value in trace["workload"].items() if name != "uuid"}
        text = json.dumps(content, sort_keys=True)
        if text not in traces.seen:
            traces.seen.add(text)
            traces.workloads.append(workload)
        _count_leaves(trace, "", traces.fields)
        evaluation = trace.get("evaluation")
        if isinstance(evaluation, dict):
            status = evaluation.get("status")
            traces.statuses[status if isinstance(status, str) else "no status"] += 1

    def suite(self, about, folder, tensors):
        """The suite of all that was added. `about`: its first line. `folder`: what it says before
        the name of a recording."""
        self._suite, self._recorder, self._said = SuiteText(), Recorder(folder, tensors), Counter()
        self._unused_of_definitions, self._unused_of_traces = Counter(), Counter()
        statuses = Counter()
        for name, traces in sorted(self._traces.items()):
            statuses.update(traces.statuses)
            self._take(name, traces)
        said = sorted(self._said.items())
        notes = [f"{note} ({count} times)" if count > 1 else note for note, count in said]
        self._list(notes, "results are not imported", statuses, "{1} {0}")
        notes += [f"{counted(self._solutions, 'solution')} not imported"] * (self._solutions > 0)
        notes += [f"{counted(self._others, 'other JSON file')} not read"] * (self._others > 0)
        self._list(notes, "of definitions not used", self._unused_of_definitions, "{0} ({1})")
        self._list(notes, "of traces not used", self._unused_of_traces, "{0} ({1})")
        cases = self._suite.cases
        if not cases:
            return Imported("", 0, {}, notes)
        text = self._suite.text(about)
        length = len(text.encode("utf-8", "surrogateescape"))
        if length > _LONGEST_SUITE or cases > _MOST_CASES:
            more = f"more than a suite holds, {_MOST_CASES} and {_LONGEST_SUITE}"
            raise Error(USAGE, f"{cases} cases in {length} bytes are {more}; import fewer files")
        return Imported(text, cases, self._recorder.recordings, notes)

    @staticmethod
    def _list(notes, what, counts, form):
        most = 200
        names = [form.format(one_line(name), counts[name]) for name in sorted(counts)[:most]]
        names += [f"and {len(counts) - most} more"] * (len(counts) > most)
        notes += [f"{what}: {', '.join(names)}"] * bool(names)

    def _say_of(self, definition, what):
        self._said[one_line(f"{definition}: {what}")] += 1

    def _take(self, name, traces):
        if name.startswith(_OWN):
            self._take_own(name, traces.workloads)
            used = ("workload.axes.", "workload.inputs.")
            read = {field for field in traces.fields if field.startswith(used)} | {"definition"}
            self._count_unused(self._unused_of_traces, traces.fields, read)
            return
        definition = self._definitions.get(name)
        layer = Layer(definition[1]) if definition else None
        if layer is None or layer.why:
            why = layer.why if layer else "no .json file beside the traces defines it"
            self._say_of(name, f"{counted(len(traces.workloads), 'workload')} left out: {why}")
            return
        fields = Counter()
        _count_leaves(definition[1], "", fields)
        self._count_unused(self._unused_of_definitions, fields, layer.read)
        read = self._take_layer(layer, traces.workloads)
        self._count_unused(self._unused_of_traces, traces.fields, read)

    @staticmethod
    def _count_unused(unused, fields, read):
        unused.update({field: count for field, count in fields.items() if field not in read})

    def _take_own(self, definition, workloads):
        """Of the names that trace_case() makes."""
        for workload in workloads:
            case = case_of_trace(definition, workload.axes)
            fault = fault_of_case(*case) if case else "its name and axes contradict"
            if fault:
                self._say_of(definition, f"a workload is left out: {fault}")
            else:
                self._suite.add(case[0], *case)

    def _take_layer(self, layer, workloads):
        """Returns the fields of the traces that were read."""
        for lacking in layer.lacking:
            self._say_of(layer.name, lacking)
        read = {"definition"}
        for workload in workloads:
            tokens = workload.axes.get(layer.tokens_axis)
            if tokens is None:
                why = f"a workload is left out: it lacks axis {layer.tokens_axis}"
                self._say_of(layer.name, why)
                continue
            read.add("workload.axes." + layer.tokens_axis)
            random = [name for name, given in workload.inputs.items() if given.kind == "random"]
            read.update(f"workload.inputs.{name}.type" for name in random)
            faults = []
            scale = self._recorder.scale_of(workload, read)
            routing = self._recorder.routing_of(layer, workload, tokens, read, faults)
            for op, params in layer.cases(tokens, scale, routing, faults):
                fault = fault_of_case(op, params)
                if fault:
                    faults.append(fault)
                else:
                    self._suite.add(layer.name, op, params)
            for fault in faults:
                self._say_of(layer.name, fault)
        return read


def _trace_files(path):
    """Every .jsonl and .json of a folder, however deep, sorted; or the one file."""
    if os.path.isfile(path):
        return [path]

    def fail(error):
        why = f"cannot be read: {error.strerror}; give a folder of traces"
        raise Error(USAGE, f"'{path}' {why}")

    files = []
    for folder, _, names in os.walk(path, onerror=fail):
        named = [name for name in names if os.path.splitext(name)[1] in (".jsonl", ".json")]
        files += [os.path.join(folder, name) for name in named]
    return sorted(filter(os.path.isfile, files), key=lambda file: file.split("/"))


def import_trace_set(path, about, folder):
    every = TraceImport()
    for file in _trace_files(path):
        every.add(file, read_file(file))
    root = os.path.dirname(path) if os.path.isfile(path) else path
    return every.suite(about, folder, tensors_below(root or "."))


def _home():
    """The folder with suites/ and reports/ of which this is a part; empty where there is none,
    which an import can do without."""
    package = os.path.dirname(os.path.realpath(__file__))
    above = [os.path.join(package, "_home"), package]  # the first of a wheel
    while above[-1] != os.path.dirname(above[-1]):
        above.append(os.path.dirname(above[-1]))
    given = os.environ.get("MOEGATE_HOME")
    for folder in [given] if given else above:
        if all(os.path.isdir(os.path.join(folder, name)) for name in ("suites", "reports")):
            return os.path.realpath(folder)
    return ""


def _as_suites_name(folder):
    """What a suite says of a folder: `replay:` finds it from everywhere below the tool's home, else
    as it was typed."""
    whole, home = os.path.realpath(folder), _home()
    inside = home and os.path.commonpath([whole, home]) == home
    return os.path.relpath(whole, home) if inside else os.path.normpath(folder)


def _import(options):
    if not options.path:
        raise Error(USAGE, "moegate.flashinfer import: give the folder of the data set")
    if not options.out:
        raise Error(USAGE, "moegate.flashinfer import: give --out FOLDER, for the suite")
    if not options.name:
        raise Error(USAGE, "--name is empty; give the suite a name")
    if one_line(options.name) != options.name:
        remedy = "control characters, line ends or bytes that are no UTF-8; leave them out"
        raise Error(USAGE, f"--name '{one_line(options.name)}' has {remedy}")
    if "/" in options.name:
        raise Error(USAGE, f"--name '{options.name}' is no file's name; --out has its folder")
    made_by = "made by `python3 -m moegate.flashinfer import`"
    about = f"Workloads of {options.path}, FlashInfer-Bench's trace schema; {made_by}."
    data = os.path.join(options.out, "data")
    imported = import_trace_set(options.path, about, _as_suites_name(data))
    print_result("".join(f"- {printable(note)}\n" for note in imported.notes))
    if not imported.cases:
        why = "no workload is one of an operator that is here"
        raise Error(COVERAGE, f"{options.path}: {why}")
    make_folder(data if imported.recordings else options.out)
    for name, content in imported.recordings.items():
        write_file(os.path.join(data, name), content)
    suite = os.path.join(options.out, f"{options.name}.suite")
    write_file(suite, imported.text.encode("utf-8", "surrogateescape"))
    count = f"{imported.cases} cases, {len(imported.recordings)} recorded routings"
    print_result(f"{count} in {suite}; `moegate list cases --suite {suite}`\n")


# ---- The store

_APPLICATION, _EARLIER, _VERSION = 0x4D6F4547, 0x4D6F4550, 2  # as harness/store/schema.sql has them


def _refuse_other(path, application, version):
    if application == _EARLIER:
        raise Error(
            STORE,
            f"{path}: a moegate before 0.2.0 wrote this store (version {version}), and this "
            "program cannot read it; choose another --db, or use the program of the commit that "
            "wrote it (table run, column git_sha)",
        )
    why = f"is an SQLite database of another program (application_id {application:#x})"
    raise Error(STORE, f"{path}: {why}; choose another --db")


def _check_file(path):
    """Looks at no more than the first bytes: SQLite would roll back the journal of another
    program's database."""
    if not path or path.startswith(":"):
        raise Error(USAGE, f"--db '{path}' names no file; give the path of one")
    if os.path.isdir(path):
        raise Error(STORE, f"{path}: is a folder; --db names a file")
    if not os.path.exists(path):
        raise Error(STORE, f"{path}: no such store; `moegate run --db {path}` makes one")
    if not os.path.isfile(path):
        raise Error(STORE, f"{path}: this is not a regular file; choose another --db")
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError as error:
        raise Error(STORE, f"{path}: cannot open the store: {error.strerror}") from None
    if head and (len(head) < 100 or not head.startswith(b"SQLite format 3\0")):
        why = "file is not a database; it is not an intact SQLite database"
        raise Error(STORE, f"{path}: {why}: choose another --db")
    version, application = struct.unpack_from(">I4xI", head, 60) if head else (0, 0)
    if application not in (0, _APPLICATION):
        _refuse_other(path, application, version)


class Store:
    """A store that is read, in one state of it, within `with`."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        _check_file(self.path)
        with self.failures():
            # Read-write: what a writer that died has left can only be rolled back so.
            file = urllib.parse.quote(os.fsencode(os.path.abspath(self.path)))
            address = f"file:{file}?mode=rw"
            self._db = sqlite3.connect(address, uri=True, timeout=10, isolation_level=None)
            self._db.text_factory = lambda text: text.decode("utf-8", "replace")
            self._db.row_factory = sqlite3.Row
            # Stores are mailed around: nothing that their schema says is trusted.
            self._db.executescript("PRAGMA trusted_schema = 0; PRAGMA query_only = 1; BEGIN")
            objects, application, version = (
                self._db.execute(sql).fetchone()[0]
                for sql in (
                    "SELECT count(*) FROM sqlite_schema",
                    "PRAGMA application_id",
                    "PRAGMA user_version",
                )
            )
        if application == version == objects == 0:
            why = "is an empty file, no store"
            raise Error(STORE, f"{self.path}: {why}; `moegate run --db {self.path}` fills it")
        if application != _APPLICATION:
            _refuse_other(self.path, application, version)
        if version < 1:
            why = f"the store says that its version is {version}, so it is damaged"
            raise Error(STORE, f"{self.path}: {why}; restore a copy, or choose another --db")
        if version > _VERSION:
            known = f"this program knows versions up to {_VERSION}"
            why = f"this store has version {version}, and {known}"
            remedy = "use the moegate that wrote it, or a newer moegate"
            raise Error(STORE, f"{self.path}: {why}; {remedy}")
        return self

    def __exit__(self, *_):
        self._db.close()

    @contextlib.contextmanager
    def failures(self):
        """Around what is done with its values, too: damaged ones are not of their columns' types."""
        try:
            yield
        except sqlite3.Error as error:
            remedy = "it is damaged: restore a copy, or choose another --db"
            if "locked" in str(error):
                remedy = "another process holds it: wait until it ends, or end it"
            raise Error(STORE, f"{self.path}: a statement failed: {error}; {remedy}") from None
        except (TypeError, ValueError, AttributeError) as error:
            self.damaged(f"a value is none that a run stores ({one_line(str(error))})")

    def rows(self, sql, *values):
        with self.failures():
            return self._db.execute(sql, values).fetchall()

    def damaged(self, why):
        raise Error(STORE, f"{self.path}: is damaged: {why}; restore a copy")

    def fits(self, pattern, variant):
        """As the reports match it, in SQL."""
        return self.rows("SELECT ?2 GLOB ?1", pattern, variant)[0][0] == 1

    def _runs(self):
        runs = self.rows("SELECT run_id, label, status FROM run ORDER BY run_id DESC LIMIT 10")
        text = ", ".join(f"{run} '{label}' ({status})" for run, label, status in runs)
        return text or "none; `moegate run` makes one"

    def find_run(self, which):
        """`latest`, a number or a label, which may be a number, too."""
        if which == "latest":
            found = self.rows(
                "SELECT run_id FROM run WHERE status <> 'running' AND task = 'measure' AND run_id "
                "NOT IN (SELECT run_id FROM tag WHERE name IN ('ab', 'repeat')) "
                "ORDER BY started DESC, run_id DESC LIMIT 1"
            )
            if not found:
                why = "no finished run that measures latency"
                raise Error(USAGE, f"{self.path}: {why}; its runs: {self._runs()}")
            return found[0][0]
        found = []
        if re.fullmatch("[0-9]{1,18}", which):
            found = self.rows("SELECT run_id FROM run WHERE run_id = ?", int(which))
        of_label = "SELECT run_id FROM run WHERE label = ? ORDER BY run_id DESC LIMIT 1"
        found = found or self.rows(of_label, valid_text(which))
        if not found:
            labels = [row[0] for row in self.rows("SELECT DISTINCT label FROM run")]
            meant = get_close_matches(which, ["latest", *labels], n=1)
            meant = f" (did you mean '{meant[0]}'?)" if meant else ""
            why = f"no run '{which}'{meant} (latest, a number or a label)"
            raise Error(USAGE, f"{self.path}: {why}; its runs: {self._runs()}")
        return found[0][0]


# ---- The export. Facts of the schema that shape it: `performance` belongs to PASSED alone,
# `correctness` to PASSED and INCORRECT_NUMERICAL; elsewhere both are null. A latency that there is
# none of is 0, not null. A number that JSON has not is a text: "NaN", "Infinity". For unsupported,
# bad_timer and what was not timed it has no word.

_STATUSES = {"wrong": "INCORRECT_NUMERICAL", "crashed": "RUNTIME_ERROR", "timeout": "TIMEOUT"}
# What of a result stands in its trace. Whatever a store has beside it is named in the notes.
_KEYS = {"result_id", "process_id", "case_id", "verification_id", "checksum", "verified_checksum"}
_TRACED = {"variant", "status", "why", "path", "deterministic", "samples", "invalid", "span_ns"}
_TRACED |= {"impossible", "suspect_warm", "timer"} | _KEYS
_TRACED_ACCURACY = {"output", "mismatches", "nonfinite", "rel_l2", "max_abs", "max_rel"}
_TRACED_ACCURACY |= {"worst_row"} | _KEYS
_PARTS = ["seeds", "kernels", "metrics", "stalls", "spans_ns"]

# `lines`: by operator, for each result a JSON object and a line end; `notes`: what is not in them,
# one line each.
Exported = namedtuple("Exported", "run lines count notes")


def _any_number(value):
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def uuid_of_case(key):
    """The same in every store: a UUID of the version that is for one's own rules (8)."""
    text = hashlib.sha256(b"moegate case " + key.encode()).hexdigest()[:32]
    text = text[:12] + "8" + text[13:16] + "89ab"[ord(text[16]) % 4] + text[17:]
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _file_name(text):
    """Of a folder or a file: lower-case letters and digits, with '-' between."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def _has_latency(result):
    return result["status"] in ("ok", "noisy") and result["span_ns"] > 0


class TraceWriter:
    def __init__(self, store, run_id):
        self.store = store
        run = store.rows(
            "SELECT run.*, name AS device, class, driver FROM run JOIN device USING (device_id) "
            "WHERE run_id = ?",
            run_id,
        )
        if not run:
            store.damaged("a run of no device")
        self.run = run[0]
        self.commit = self._commit()
        began = "SELECT round, min(started) FROM process WHERE run_id = ? GROUP BY round"
        self.began = dict(map(tuple, store.rows(began, run_id)))
        befores = "SELECT op, variant, after FROM before WHERE run_id = ? ORDER BY op, rank"
        self.befores = {}
        for op, variant, after in store.rows(befores, run_id):
            self.befores.setdefault(op, []).append((variant, after))
        # CROSS JOIN: in this order, so that no more than the run's rows are read.
        self.results = store.rows(
            "SELECT key, op, suite, section, round, r.* FROM process CROSS JOIN result r "
            "USING (process_id) CROSS JOIN run_case USING (run_id, case_id) CROSS JOIN bench_case "
            "USING (case_id) WHERE run_id = ? ORDER BY key, r.variant, round, result_id",
            run_id,
        )
        self.accuracy = {}
        for output in store.rows(
            "SELECT * FROM verified_output WHERE verification_id IN (SELECT verification_id FROM "
            "process CROSS JOIN result USING (process_id) WHERE run_id = ?) "
            "ORDER BY verification_id, output",
            run_id,
        ):
            self.accuracy.setdefault(output["verification_id"], []).append(output)
        timed = [result for result in self.results if _has_latency(result)]
        self.timed = {(r["key"], r["round"], r["variant"]): r for r in timed}

    def _commit(self):
        if self.run["git_sha"]:
            return self.run["git_sha"] + ("-dirty" if self.run["dirty"] else "")
        return "sha256:" + self.run["program"] if self.run["program"] else "unknown"

    def describe(self):
        label = f" '{self.run['label']}'" if self.run["label"] else ""
        return f"run {self.run['run_id']}{label}"

    def write(self):
        lines, left_out, count = {}, Counter(), 0
        for result in self.results:
            if not math.isfinite(result["span_ns"]):
                self.store.damaged(f"row {result['result_id']}: span_ns is {result['span_ns']}")
            measured = result["status"] in ("ok", "noisy")
            status = "PASSED" if _has_latency(result) else _STATUSES.get(result["status"])
            if status is None:
                left_out["not timed" if measured else result["status"]] += 1
                continue
            trace = self._trace(result, status)
            text = json.dumps(trace, ensure_ascii=False, separators=(",", ":"))
            lines.setdefault(result["op"], []).append(text + "\n")
            count += 1
        joined = {op: "".join(texts) for op, texts in sorted(lines.items())}
        return Exported(self.run, joined, count, self._notes(left_out))

    def _notes(self, left_out):
        notes = [
            f"{count} {'result is' if count == 1 else 'results are'} left out, {what}: "
            "the schema has no status for that"
            for what, count in sorted(left_out.items())
        ]
        columns = {
            table: [row["name"] for row in self.store.rows(f"PRAGMA table_info({table})")]
            for table in ("result", "verified_output")
        }
        fields = [name for name in columns["result"] if name not in _TRACED] + _PARTS
        of_outputs = [name for name in columns["verified_output"] if name not in _TRACED_ACCURACY]
        fields += [f"accuracy.{name}" for name in of_outputs]
        why = "the schema has no place for these fields of a result"
        return [*notes, f"{why}: {', '.join(fields)}"]

    def _trace(self, result, status):
        definition, axes, scalars = trace_case(result["key"])
        inputs = {"operands": {"type": "random"}}
        for name, value in scalars.items():
            inputs[name] = {"type": "scalar", "value": value}
        passed = _has_latency(result)
        compared = passed or result["status"] == "wrong"
        return {
            "definition": definition,
            "workload": {"axes": axes, "inputs": inputs, "uuid": uuid_of_case(result["key"])},
            "solution": f"{result['variant']}@{self.commit}",
            "evaluation": {
                "status": status,
                "environment": {
                    "hardware": self.run["device"] or self.run["class"] or "unknown",
                    "libs": self._libs(),
                },
                "timestamp": self.began.get(result["round"], self.run["started"]),
                "log": self._log(result),
                "correctness": self._correctness(result) if compared else None,
                "performance": self._performance(result) if passed else None,
            },
        }

    def _libs(self):
        libs = {
            # A GPU's driver text: "driver 575.57, CUDA 12.9, runtime 12.4" -> "12.4".
            "cuda": self.run["driver"].partition("runtime ")[2],
            "driver": self.run["driver"],
            "moegate": self.commit,
            "moegate.build": self.run["build"],
            "moegate.flush": self.run["flush"],
            "moegate.protocol": str(self.run["protocol"]),
        }
        return {name: text for name, text in libs.items() if text}

    def _log(self, r):
        log = f"moegate: {r['status']}" + (f": {r['why']}" if r["why"] else "")
        if r["path"]:
            log += f"\npath {r['path']}"
        if r["timer"]:
            log += f"\n{r['samples']} valid samples, {r['invalid']} invalid, timer {r['timer']}"
        if r["impossible"]:
            log += "\nthe span is below the roofline's floor on this device"
        if r["suspect_warm"]:
            log += "\ncold about as fast as warm, though the data fits in the cache"
        where = f"round {r['round']}, suite {r['suite']}, section {r['section']}"
        return f"{log}\nrun {self.run['uuid']}, {where}"

    def _correctness(self, result):
        # None is stored where it is wrong for another reason than its outputs.
        outputs = self.accuracy.get(result["verification_id"], [])

        def most(name):
            """NULL is no number, and no number is the largest: an error that is unknown is not
            small."""
            errors = [output[name] for output in outputs]
            return "NaN" if None in errors or not errors else _any_number(max(0.0, *errors))

        return {
            "max_relative_error": most("max_rel"),
            "max_absolute_error": most("max_abs"),
            "extra": {
                "outputs": [output["output"] for output in outputs],
                "rel_l2": most("rel_l2"),
                "worst_row": most("worst_row"),
                "mismatches": sum(output["mismatches"] for output in outputs),
                "nonfinite": sum(output["nonfinite"] for output in outputs),
                "deterministic": result["deterministic"] != 0,
            },
        }

    def _performance(self, result):
        reference = self._reference(result)
        latency, compared = result["span_ns"], reference["span_ns"] if reference else 0.0
        return {
            "latency_ms": latency * 1e-6,
            "reference_latency_ms": compared * 1e-6,
            "speedup_factor": compared / latency,
        }

    def _reference(self, result):
        """What the operator states the variant to be compared with, if it was timed in the same
        case and round; one that others are compared with is its own."""
        befores = self.befores.get(result["op"], [])
        if any(variant == result["variant"] for variant, _ in befores):
            return result
        for variant, after in befores:
            timed = self.timed.get((result["key"], result["round"], variant))
            if timed and self.store.fits(after, result["variant"]):
                return timed
        return None


def _nearest_store():
    """The store that is meant without --db: MOEGATE_DB, else results.sqlite of this folder, else a
    night's."""
    given, usual, nights = os.environ.get("MOEGATE_DB"), "results.sqlite", "out/results.sqlite"
    if given:
        say(f"store: {given} (MOEGATE_DB)")
        return given
    if os.path.exists(usual) or not os.path.exists(nights):
        return usual
    say(f"store: {nights} (no {usual} here)")
    return nights


def _export(options):
    if not options.out:
        raise Error(USAGE, "moegate.flashinfer export: give --out FILE, --out FOLDER/ or --out -")
    in_folder = options.out.endswith("/") or os.path.isdir(options.out)
    if not in_folder and options.out != "-":
        check_output(options.out)
    path = _nearest_store() if options.db is None else options.db
    with Store(path) as store, store.failures():
        writer = TraceWriter(store, store.find_run(options.which))
        exported = writer.write()
    for note in exported.notes:
        say(note)
    if not exported.count:
        why = "has no result that a trace can hold; `moegate list runs` shows the runs"
        raise Error(COVERAGE, f"{writer.describe()} {why}")
    if in_folder:
        # One file for each operator. Its name is the run's, so that those of several runs lie side
        # by side.
        for op, lines in exported.lines.items():
            folder = os.path.join(options.out, "traces", _file_name(op))
            make_folder(folder)
            name = f"moegate-{_file_name(exported.run['uuid'])}.jsonl"
            write_file(os.path.join(folder, name), lines.encode())
    elif options.out == "-":
        print_result("".join(exported.lines.values()))
        return
    else:
        write_file(options.out, "".join(exported.lines.values()).encode())
    print_result(f"{exported.count} traces of {writer.describe()} in {options.out}\n")


# ---- The command line


def _parser():
    prog, raw = "python3 -m moegate.flashinfer", argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=prog, description=__doc__, formatter_class=raw, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name, run, about, example):
        text = f"{about}.\n\nExample:\n\n    {prog} {name} flashinfer-trace {example}"
        one = commands.add_parser(
            name, help=about, description=text, formatter_class=raw, allow_abbrev=False
        )
        one.set_defaults(run=run)
        formats = "FlashInfer-Bench's trace schema; there is no other format"
        one.add_argument("format", nargs="?", default="", metavar="flashinfer-trace", help=formats)
        return one

    about = "Writes a run's results as traces of FlashInfer-Bench"
    to = command("export", _export, about, "--run latest --out traces.jsonl")
    path = "a file; - is standard output; a folder, there or ending in '/', gets traces/OPERATOR/"
    to.add_argument("--out", action=Once, metavar="PATH", help=f"{path}, as a data set has it")
    db = "the store (default: MOEGATE_DB, else results.sqlite, else out/results.sqlite)"
    to.add_argument("--db", action=Once, metavar="PATH", help=db)
    which = "latest, a number or a label (default: latest)"
    to.add_argument(
        "--run", action=Once, metavar="R", default="latest", dest="which", help=which
    )

    about = "Makes a suite of FlashInfer-Bench's definitions, workloads and traces"
    back = command("import", _import, about, "flashinfer-trace/ --out suites --name recorded")
    path = "the data set's folder, or one file of traces"
    back.add_argument("path", nargs="?", default="", metavar="PATH", help=path)
    folder = "gets NAME.suite, and data/ with recorded expert ids; made where it is missing"
    back.add_argument("--out", action=Once, metavar="FOLDER", help=folder)
    name = "of the suite (default: %(default)s)"
    back.add_argument("--name", action=Once, default="flashinfer-trace", help=name)
    return parser


def run(arguments):
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        raise Error(USAGE, "moegate.flashinfer: give a command, import or export; see --help")
    if options.format != "flashinfer-trace":
        what = f"there is no format '{options.format}'; use flashinfer-trace"
        raise Error(USAGE, f"moegate.flashinfer {options.command}: {what}")
    options.run(options)


def main(arguments=None):
    return exit_code_of(run, arguments)


if __name__ == "__main__":
    sys.exit(main())
