# SPDX-License-Identifier: Apache-2.0
"""A script as users of triton.testing have them, whose one changed import is moegate's: prints rows of a sweep."""

import numpy as np
from moegate.testing import do_bench  # was: from triton.testing import do_bench

QUICK = {"warmup": 1, "rep": 2}


def swish(x):
    return x / (1 + np.exp(-x))


def gigabytes_per_second(x, ms):
    return 2 * x.nbytes / (ms * 1e6)


def main():
    for size in (256, 1024):
        x = np.linspace(-4, 4, size, dtype=np.float32)
        call = lambda: swish(x)  # noqa: B023, E731
        mean = do_bench(call, **QUICK)
        median, low, high = do_bench(call, quantiles=[0.5, 0.2, 0.8], **QUICK)
        modes = [do_bench(call, return_mode=mode, **QUICK) for mode in ("min", "median", "max")]
        every = do_bench(call, return_mode="all", **QUICK)
        assert isinstance(mean, float) and all(isinstance(ms, float) for ms in modes + every)
        assert 0 < low <= median <= high
        print(size, f"{mean:.6f}", f"{median:.6f}", f"{gigabytes_per_second(x, median):.3f}", len(every))


if __name__ == "__main__":
    main()
