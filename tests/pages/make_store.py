#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a store to draw pages of: nights of one GPU and of a host, a step, failures, names that are markup.

make_store.py OUT.sqlite [--cases N] [--nights N]
"""
import argparse
import datetime
import json
import math
import pathlib
import random
import sqlite3
import struct

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "harness" / "store" / "schema.sql"
HOSTILE = "<script>window.hacked=1</script><img src=x onerror=\"window.hacked=1\">&lt;b&gt;\u202e'\"`${1}</script>"
VARIANTS = ["chain3", "fused_cluster"]
OPERATORS = ["topk_sort", "moe_down", "silu_mul_quant"]
TOKENS = [1, 8, 64, 512]
PROCESSES = 3


def open_new(path):
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.executescript(SCHEMA.read_text() + "PRAGMA synchronous = 0;")
    return db


def insert(db, table, **row):
    names = ", ".join(row)
    return db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})",
                      list(row.values())).lastrowid


def add_devices(db):
    gpu = insert(db, "device", backend="cuda", name="NVIDIA H200", **{"class": "nvidia-h200"}, uuid="GPU-1",
                 driver="580", processors=132, cache_bytes=60 << 20, memory_bytes=140 << 30, shared_per_block=228 << 10)
    host = insert(db, "device", backend="host", name="A host", **{"class": "host-a"}, uuid="HOST-1", driver="",
                  processors=2, cache_bytes=32 << 20, memory_bytes=16 << 30, shared_per_block=0)
    for name, value in {"read_bytes_per_s": 4.4e12, "fp8_flops": 1.5e15, "bf16_flops": 8e14}.items():
        insert(db, "ceiling", device_id=gpu, name=name, value=value, measured="2026-11-01T00:00:00Z")
    return gpu, host


def add_cases(db, count):
    cases = []
    for i in range(count):
        op, tokens = OPERATORS[i % len(OPERATORS)], TOKENS[i // len(OPERATORS) % len(TOKENS)]
        params = {"experts": 256, "hidden": 7168 + i // 12, "launch": "graph", "cache": "cold", "routing": "uniform",
                  "tokens": tokens, "topk": 8}
        key = op + "/" + ",".join(f"{k}={v}" for k, v in params.items())
        work = 1e5 * tokens * (1 + i % 5)
        cases.append((insert(db, "bench_case", key=key, op=op, params=json.dumps(params), flops=40 * work,
                             read_bytes=work, write_bytes=work / 4), key, op, tokens))
    return cases


def add_run(db, device, host, number, cases, label, started):
    run = insert(db, "run", label=label, started=started, finished=started, status="complete", device_id=device,
                 protocol=1, timer="clock" if host else "cupti", flush="lines" if host else "read", rounds=PROCESSES,
                 git_sha=f"{number:x}".ljust(40, "0"), dirty=0, build="g++", host="a", command="moegate run --suite nightly",
                 options="{}", uuid=f"{number:032x}", campaign=f"{number:032x}", program="p")
    for case_id, _, op, _ in cases:
        insert(db, "run_case", run_id=run, case_id=case_id, suite="nightly", section="deepseek-r1", facts="{}")
    for op in OPERATORS:
        insert(db, "operator", run_id=run, op=op, yardstick="chain3" if host else "")
        insert(db, "before", run_id=run, op=op, rank=0, variant="chain3", after="*")
    return run


def add_result(db, process, case, variant, us, host, details, draw, code):
    case_id, _, _, _ = case
    ns = us * 1000
    judged = ("is_yardstick" if variant == "chain3" else "ratio") if host else "span"
    ratio = (1 if variant == "chain3" else 0.8 * us / us) if host else 0
    result = insert(db, "result", process_id=process, case_id=case_id, variant=variant, status="ok", why="", path="",
                    deterministic=1, timer="clock" if host else "cupti", tick_ns=1, samples=200, invalid=0, flags=0,
                    span_ns=ns, median_ns=ns, low_ns=ns * 0.99, high_ns=ns * 1.01, min_ns=ns * 0.97, busy_ns=ns,
                    sum_ns=ns, ratio=ratio * (1 + 0.01 * draw.random()) if judged == "ratio" else ratio,
                    ratio_low=ratio, ratio_high=ratio, sm_mhz=0 if host else 1980, impossible=0, suspect_warm=0,
                    wall_s=1, code=code, judged=judged, yardstick="chain3" if host else "",
                    yardstick_code="c" if host else "")
    insert(db, "verification", verification_id=result, digest=f"result {result}")
    db.execute("UPDATE result SET verification_id = result_id WHERE result_id = ?", [result])
    insert(db, "verified_output", verification_id=result, output="out", ok=1, why="", elements=100, mismatches=0,
           nonfinite=0, rel_l2=1e-3, cosine=1, scale=1, max_abs=1e-3, max_rel=1e-2, worst_row=1e-3, worst_index=0)
    if not details:
        return
    spans = [ns * math.exp(0.01 * draw.gauss(0, 1)) for _ in range(200)]
    insert(db, "sample", result_id=result, spans=struct.pack("<200f", *spans))
    for i in range(1 if variant != "chain3" else 3):
        insert(db, "kernel", result_id=result, ordinal=i, name=f"kernel_{i}<{HOSTILE}>", grid="1x1x1", block="256x1x1",
               cluster="", registers=32, static_shared=0, dynamic_shared=0, ns=ns / 4, gap_ns=ns / 20 if i else 0)
    insert(db, "metric", result_id=result, ordinal=-1, name="dram__bytes_read.sum", unit="bytes", value=1e6)


def add_verdicts(db, run, cases, draw):
    for i, (_, key, _, tokens) in enumerate(cases):
        for variant in VARIANTS + ([HOSTILE] if i == 0 else []):
            effect = 0.12 if i == 1 else draw.gauss(0, 0.004)
            outcome = "wrong" if variant == HOSTILE else "regressed" if i == 1 else "pass"
            insert(db, "verdict", run_id=run, against=f"baselines/{HOSTILE}.tsv", suite="nightly", key=key,
                   variant=variant, outcome=outcome, stage=1, base=10 + tokens, head=(10 + tokens) * (1 + effect),
                   effect=effect, low=effect - 0.01, high=effect + 0.01, df=10, p=0.5, p_adjusted=0.5, mde=0.02,
                   blind=0, family=len(cases), waiver="", why=f"because {HOSTILE}", cause="")


def make(path, count, nights):
    draw = random.Random(1)
    db = open_new(path)
    gpu, host = add_devices(db)
    cases = add_cases(db, count)
    begin = datetime.datetime(2026, 1, 1)
    for night in range(nights):
        started = (begin + datetime.timedelta(days=night)).strftime("%Y-%m-%dT%H:%M:%SZ")
        last = night == nights - 1
        label = HOSTILE if last else "nightly"
        for device in [gpu, host] if night % 3 == 0 else [gpu]:
            number = 1000 * device + night
            run = add_run(db, device, device == host, number, cases, label, started)
            for round in range(PROCESSES):
                process = insert(db, "process", run_id=run, round=round, pid=1, started=started,
                                 uuid=f"{device}-{night}-{round}", throttle="sw_power_cap" if round == 1 else "")
                for i, case in enumerate(cases):
                    for variant in VARIANTS:
                        step = 1.08 if night >= nights * 2 // 3 and case[2] == "moe_down" else 1
                        us = (4 if variant == "fused_cluster" else 10) * (1 + case[3] / 100) * step
                        code = "c" if step == 1 else "d"
                        add_result(db, process, case, variant, us * math.exp(0.003 * draw.gauss(0, 1)),
                                   device == host, last, draw, code)
                if last:
                    insert(db, "result", process_id=process, case_id=cases[0][0], variant=HOSTILE, status="crashed",
                           why=HOSTILE, path="", deterministic=0, timer="", tick_ns=0, samples=0, invalid=0, flags=0,
                           span_ns=0, median_ns=0, low_ns=0, high_ns=0, min_ns=0, busy_ns=0, sum_ns=0, ratio=0,
                           ratio_low=0, ratio_high=0, sm_mhz=0, impossible=0, suspect_warm=0, wall_s=1)
            add_verdicts(db, run, cases, draw)
    db.execute("ANALYZE")
    db.commit()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--nights", type=int, default=24)
    options = parser.parse_args()
    make(options.out, options.cases, options.nights)
