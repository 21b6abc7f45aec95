# SPDX-License-Identifier: Apache-2.0
"""What a file of kernels states. The worker registers it when the file has been imported."""

import dataclasses
import typing

from moegate import _versions


@dataclasses.dataclass
class Param:
    """A parameter of an operator. Without a default every suite has to give it."""

    name: str
    default: str = ""
    help: str = ""


def uniform(low, high):
    """A tensor of a floating type, uniform between `low` and `high`."""
    return {"kind": "uniform", "low": float(low), "high": float(high)}


def e4m3_normal():
    """A tensor of fp8: normal values with a standard deviation of 129."""
    return {"kind": "e4m3_normal"}


def int4_normal():
    """A tensor of uint8, each two 4-bit codes of normal values with offset 8."""
    return {"kind": "int4_normal"}


@dataclasses.dataclass
class Input:
    """An input tensor. `fill`: uniform(), e4m3_normal(), int4_normal(), all drawn by the harness, or a function of
    (case, numpy.random.Generator) that returns an array of values, or of the elements' bits. `role`: activation,
    or weight, which cache = cold-weights leaves cold alone."""

    name: str
    dtype: str
    shape: tuple
    fill: typing.Any
    role: str = "activation"


@dataclasses.dataclass
class Tolerance:
    """Limits of an output; it passes only when it passes all: per element |out - truth| <= atol + rtol * |truth|, the
    relative L2 distance of the whole and of the worst row (its last dimension), and |scale - 1| of the best fit.

    `between`: the relative error (rms) that roundings in between add to an element; 0: a kernel rounds once, from fp32.
    The harness then also limits what the output's own rounding does not explain. None: it does not.
    `by_chance`: what a value that is quantised in between may add to a row where it falls to the other side of a tie."""

    rtol: float
    atol: float
    rel_l2: float
    row: float
    scale: float
    between: typing.Optional[float] = None
    by_chance: float = 0


@dataclasses.dataclass
class Output:
    """An output tensor; integers are compared exactly.

    `values`: for a format that has no dtype here (e5m2, int4, MXFP4), a function of {name: array of an output's
    elements} that returns the values of this one, as many as its truth has: these are compared, under `tolerance`."""

    name: str
    dtype: str
    shape: tuple
    tolerance: typing.Optional[Tolerance] = None
    values: typing.Optional[typing.Callable] = None


@dataclasses.dataclass
class Cost:
    """Floating-point operations of a launch, and the bytes that it has to read and write."""

    flops: float = 0
    read_bytes: float = 0
    write_bytes: float = 0


class Operator:
    """Base of an operator that moegate does not have. A subclass states, as class attributes, name, help, parameters
    (of Param), yardstick (the host variant that others are timed against; may be empty) and before (variants that
    the report `speedup` compares with, by backend), and defines the methods below. What is `case` here has every
    parameter as an attribute, as int or float where it is one, else as str; so has the problem `p`."""

    name = ""
    help = ""
    parameters = ()
    yardstick = ""
    before = {}

    def validate(self, case):
        """Raises ValueError for parameters that do not fit together."""

    def tensors(self, case):
        """The list of Input and Output of a case."""
        raise NotImplementedError

    def truth(self, inputs, case):
        """The expected outputs, as {name: array}: float64 from plain numpy code that shares no line with a variant.
        `inputs`: {name: array}, floating ones as float32."""
        raise NotImplementedError

    def cost(self, case):
        """A Cost; by default every input is read and every output written, once."""
        return None

    def corruptions(self):
        """Ways of being wrong that only the operator knows, as {"token_dropped": function of {name: array of an output's
        elements}, in place}; names: experts_swapped, token_dropped, scales_transposed."""
        return {}


@dataclasses.dataclass
class Choice:
    """What an engine's own lookup says for a case. `config`: {name: value}, as p.config gets it. `source`: "file",
    "default" (a rule) or "autotuned". `file` and `entry`: where it stands there. `made_with`: {package: version} that
    made it; another one here is named."""

    config: dict
    source: str = "default"
    file: typing.Optional[str] = None
    entry: typing.Any = None
    made_with: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        if self.source not in ("file", "default", "autotuned"):
            raise ValueError(f"a Choice's source '{self.source}' is not 'file', 'default' or 'autotuned'")


@dataclasses.dataclass
class Variant:
    """One implementation, as the worker registers it."""

    op: str
    name: str
    launch: typing.Callable
    backend: str
    help: str
    prepare: typing.Optional[typing.Callable]
    unsupported: typing.Optional[typing.Callable]
    workspace: typing.Optional[typing.Callable]
    tolerance: float
    between: float
    knobs: typing.Any = None
    choose: typing.Optional[typing.Callable] = None
    unmet: str = ""  # of what it requires
    rows: str = ""
    allocates: bool = False


VARIANTS = []


def variant(
    op,
    name,
    *,
    backend="cuda",
    help="",
    prepare=None,
    unsupported=None,
    workspace=None,
    tolerance=1.0,
    between=0.0,
    knobs=None,
    choose=None,
    requires=None,
    rows="",
    allocates=False,
):
    """Makes the decorated function a variant of the operator `op`, on a GPU ("cuda") or the "host".

    It gets the problem `p`: every tensor as an attribute by its name, every parameter by its, `p.workspace` and
    `p.stream`. It launches on p.stream (with torch, the current stream is that one), writes the outputs, and neither
    allocates nor waits: on a GPU it is also captured into a graph.

    allocates: it allocates through torch when it launches, in a memory pool of its own. That is poisoned between timed
    batches as outputs are, and may not grow in them: what must last is allocated in prepare().

    prepare(p): untimed, before the first launch: p.packed() lays weights out anew.
    unsupported(case, device): why it cannot run the case, or None.
    workspace(case): bytes of scratch memory. tolerance: factor on the operator's limits, 1 to 20.
    between: what it rounds in between where the operator's other variants do not: the error that this adds to an
    element, relative and rms.

    choose(case, device): the moegate.Choice that it runs; launch(p) reads p.config. It may also return the dict alone.
    knobs: what there is to choose from: {name: values}, of which every combination is a configuration, or a function of
    (case, device) that yields dicts. Each is a variant NAME/KEY=VALUE,... that runs only where --variant names it, and
    where `moegate tune --check` asks.

    rows: how a grouped GEMM gets its rows. "listed": also without padding: p.expert_rows [E] counts those of an expert,
    p.rows_by_expert [R] names them, p.topk_ids [T, k] has each row's expert, -1 for other ranks'. "sorted": p.x,
    p.x_scales and p.out have a row per place of p.sorted_token_ids, too; who writes x so is not timed. "masked", also
    untimed: p.x [E, Mmax, K], p.x_scales and p.out have an expert's rows at the beginning of its part; Mmax is twice
    the most rows that an expert has, or all tokens, up to a multiple of 128.

    requires: packages that it needs, as {"vllm": ">=0.11,<0.13"}, "" for any version; of a version only the numbers
    count (0.11.0rc1 is 0.11), and "python" is the interpreter's. Without them it is `unsupported`.
    """
    if knobs is not None and choose is None:
        raise ValueError(f"variant {name}: knobs without choose; state what {name} itself runs")
    if choose and "/" in name:
        raise ValueError(f"variant {name}: '/' begins a configuration; rename the variant")
    if backend not in ("cuda", "host"):
        raise ValueError(f"variant {name}: backend '{backend}' is not 'cuda' or 'host'")

    unmet = _versions.unmet(requires)

    def add(launch):
        text = help or (launch.__doc__ or "").strip().split("\n")[0]
        text = ": ".join(filter(None, (unmet and f"unsupported, {unmet}", text)))
        VARIANTS.append(
            Variant(
                op,
                name,
                launch,
                backend,
                text,
                prepare,
                unsupported,
                workspace,
                tolerance,
                between,
                knobs,
                choose,
                unmet,
                rows,
                allocates,
            )
        )
        return launch

    return add


def operators():
    """All subclasses of Operator with a name, in the order of their definition."""
    found, todo = [], list(Operator.__subclasses__())
    while todo:
        one = todo.pop(0)
        todo.extend(one.__subclasses__())
        if one.name:
            found.append(one)
    return found
