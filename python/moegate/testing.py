# SPDX-License-Identifier: Apache-2.0
"""Timers with the names, parameters, units and return types of triton.testing and flashinfer.testing, measured as
moegate.bench() measures: cold caches with clean lines, CUPTI's spans, warm-up until the clock is steady.

    from moegate.testing import do_bench        # in the place of triton.testing

or, for a script that is not edited, `moegate.testing.install()` after its imports. Times are milliseconds. Nothing is
verified: moegate.bench(reference=…) does that."""

import contextlib
import math
import statistics
import sys
import time
import warnings

from moegate._bench import bench

_MODES = {"mean": statistics.fmean, "median": statistics.median, "min": min, "max": max, "all": list}
_FEWEST = 20  # samples, unless the time is over
_PATIENCE_S = 60  # with a number of samples, which time does not cut, as in the originals

_cache = ["cold"]


@contextlib.contextmanager
def warm():
    """Within it caches are not flushed, as in triton's do_bench_cudagraph."""
    _cache.append("warm")
    try:
        yield
    finally:
        _cache.pop()


def _times_ms(fn, args=(), kwargs=None, *, least_ms, cache=None, launch="stream", samples=None):
    limits = {"min_samples": _FEWEST, "budget_s": max(least_ms, 1) / 1e3}
    if samples:
        limits = {"min_samples": samples, "max_samples": samples, "budget_s": _PATIENCE_S}
    timing = bench(
        fn,
        *args,
        outputs=(),
        cache=cache or _cache[-1],
        launch=launch,
        **limits,
        **(kwargs or {}),
    )
    return [us / 1e3 for us in timing.samples_us] or [math.nan]  # MOEGATE_BENCH=off


def _quantile(ordered, share):
    """Linear between the two nearest, as torch.quantile."""
    if not 0 <= share <= 1:
        raise ValueError(f"quantile {share} is not within 0 and 1")
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _summary(times, quantiles, return_mode):
    if quantiles is not None:
        found = [_quantile(sorted(times), share) for share in quantiles]
        return found[0] if len(found) == 1 else found
    return _MODES[return_mode](times)


def _without_gradients(fn, tensors):
    if tensors is None:
        return fn

    def call():
        for tensor in tensors:
            tensor.grad = None
        return fn()

    return call


def _expect_mode(return_mode):
    if return_mode not in _MODES:
        raise ValueError(f"return_mode '{return_mode}'; use one of {', '.join(_MODES)}")


def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """As triton's: milliseconds of fn(). `warmup` and `rep` are the milliseconds that it may take, together; it ends
    sooner when the median is known to 0.5 %."""
    _expect_mode(return_mode)
    times = _times_ms(_without_gradients(fn, grad_to_none), least_ms=warmup + rep)
    return _summary(times, quantiles, return_mode)


def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
    """As triton's, in milliseconds, but a graph of one call and cold; see warm()."""
    _expect_mode(return_mode)
    times = _times_ms(_without_gradients(fn, grad_to_none), least_ms=rep, launch="graph")
    return _summary(times, quantiles, return_mode)


def do_bench_proton(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """do_bench(): its spans are those of the kernels already."""
    return do_bench(fn, warmup, rep, grad_to_none, quantiles, return_mode)


def do_bench_cudagraph_proton(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
    """do_bench_cudagraph(): its spans are those of the kernels already."""
    return do_bench_cudagraph(fn, rep, grad_to_none, quantiles, return_mode)


def _one_rank():
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        if distributed.get_world_size() > 1:
            raise NotImplementedError("aggregate_op over several ranks: time each rank by itself")


def _warn_deprecated(l2_flush, l2_flush_size_mb, l2_flush_device, cold_l2_cache):
    """What is to be done; sizes and devices are the harness's own."""
    given = {"l2_flush_size_mb": l2_flush_size_mb, "l2_flush_device": l2_flush_device}
    for name, value in given.items():
        if value is not None:
            raise TypeError(f"{name} cannot be honoured: twice the cache of the device is flushed; use cold_l2_cache")
    if l2_flush is None:
        return cold_l2_cache
    warnings.warn("l2_flush is deprecated; use cold_l2_cache", DeprecationWarning, stacklevel=4)
    return l2_flush


def _gpu_times(
    fn,
    *,
    use_cuda_graph,
    dry_run_time_ms,
    repeat_time_ms,
    repeat_iters,
    sleep_after_run,
    input_args,
    input_kwargs,
    cold_l2_cache,
    l2_flush,
    l2_flush_size_mb,
    l2_flush_device,
    **without_meaning,  # dry_run_iters, num_iters_within_graph, enable_cupti, aggregate_op of one rank
):
    """What the four functions below share; they hand on all of their arguments."""
    _one_rank()
    cold = _warn_deprecated(l2_flush, l2_flush_size_mb, l2_flush_device, cold_l2_cache)
    times = _times_ms(
        fn,
        input_args,
        input_kwargs,
        least_ms=dry_run_time_ms + repeat_time_ms,
        cache="cold" if cold else "warm",
        launch="graph" if use_cuda_graph else "stream",
        samples=repeat_iters,
    )
    if sleep_after_run:
        time.sleep(min(sum(times) / 200, 1.0))
    return times


def bench_gpu_time_with_cupti(
    fn,
    dry_run_iters=None,
    repeat_iters=None,
    dry_run_time_ms=25,
    repeat_time_ms=100,
    l2_flush=None,
    l2_flush_size_mb=None,
    l2_flush_device=None,
    sleep_after_run=False,
    use_cuda_graph=False,
    input_args=(),
    input_kwargs=None,
    cold_l2_cache=True,
    aggregate_op=max,
):
    """As flashinfer's: a list of milliseconds, one for each sample. `dry_run_iters` warms up by time; `repeat_iters` are
    the timed launches, less those that another process disturbed. `aggregate_op` is of one rank. `sleep_after_run` sleeps
    once, behind them."""
    return _gpu_times(**locals())


def bench_gpu_time_with_cudagraph(
    fn,
    dry_run_iters=None,
    repeat_iters=None,
    dry_run_time_ms=25,
    repeat_time_ms=100,
    num_iters_within_graph=10,
    l2_flush=None,
    l2_flush_size_mb=None,
    l2_flush_device=None,
    sleep_after_run=False,
    input_args=(),
    input_kwargs=None,
    cold_l2_cache=True,
    aggregate_op=max,
):
    """As flashinfer's, with one call in the graph: launches do not count in the spans, so `num_iters_within_graph` has
    nothing to average."""
    return _gpu_times(**locals(), use_cuda_graph=True)


def bench_gpu_time_with_cuda_event(
    fn,
    dry_run_iters=None,
    repeat_iters=None,
    dry_run_time_ms=25,
    repeat_time_ms=100,
    l2_flush=None,
    l2_flush_size_mb=None,
    l2_flush_device=None,
    sleep_after_run=False,
    input_args=(),
    input_kwargs=None,
    cold_l2_cache=True,
    aggregate_op=max,
):
    """As flashinfer's, with CUPTI's spans: events add 2 us and more to what they time."""
    return _gpu_times(**locals(), use_cuda_graph=False)


def bench_gpu_time(
    fn,
    dry_run_iters=None,
    repeat_iters=None,
    dry_run_time_ms=25,
    repeat_time_ms=100,
    l2_flush=None,
    l2_flush_size_mb=None,
    l2_flush_device=None,
    sleep_after_run=False,
    enable_cupti=False,
    use_cuda_graph=False,
    num_iters_within_graph=10,
    input_args=(),
    input_kwargs=None,
    cold_l2_cache=True,
    aggregate_op=max,
):
    """As flashinfer's: a list of milliseconds. CUPTI times it in either case of `enable_cupti`."""
    return _gpu_times(**locals())


_REPLACED = {
    "triton.testing": ("do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton"),
    "flashinfer.testing": (
        "bench_gpu_time",
        "bench_gpu_time_with_cupti",
        "bench_gpu_time_with_cudagraph",
        "bench_gpu_time_with_cuda_event",
    ),
}


def install():
    """Puts these functions in the place of triton's and flashinfer's in every module that is imported already, also
    where one was imported by name. Returns the names that it replaced, as "module.name"."""
    replaced = []
    originals = {}
    for package, names in _REPLACED.items():
        for module in (sys.modules.get(package), sys.modules.get(package + ".utils")):
            for name in names:
                original = getattr(module, name, None)
                if original is not None and original is not globals()[name]:
                    originals[id(original)] = globals()[name]
    for module_name, module in list(sys.modules.items()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if callable(value) and id(value) in originals:
                setattr(module, name, originals[id(value)])
                replaced.append(f"{module_name}.{name}")
    return replaced
