#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step with quantisation in the loop beside one in float, and beside PyTorch's eager-mode
QAT (torch.ao) of the same network, batch and threads, in turns.

QUENCH_TORCH_PYTHON names a Python that has torch (pip install torch, in an environment of its own);
without it the peer is left out."""
import argparse
import os
import pathlib
import statistics

from common import SHARED, SOURCE, print_table, run_json, write_results

BUILD = pathlib.Path(os.environ.get("QUENCH_BINARY", SOURCE / "build/release"))
# Name, model, batch, pixels a side, classes, steps a round.
NETWORKS = [("resnet8", "resnet8_cifar10_bn.onnx", 32, 32, 10, 20),
            ("mobilenet_v2", "mobilenet_v2.onnx", 8, 224, 1000, 4)]
# The same kinds of quanters as torch.ao's, and those that `quench train` takes unless told.
QUANTERS = [("moving average", "channel_wise_abs_max", "moving_average_abs_max"),
            ("learned", "lsq", "lsq")]


# Threads that wait give their core to others: what else runs disturbs both sides less.
WAITING = {"GOMP_SPINCOUNT": "1000", "OMP_WAIT_POLICY": "passive"}


def ours(network, quanters, threads):
    name, file, batch, size, classes, steps = network
    return run_json([BUILD / "quench_bench_training", SHARED / "models" / file,
                     f"{batch}x3x{size}x{size}", classes, steps, *quanters[1:]],
                    env={**os.environ, **WAITING, "OMP_NUM_THREADS": str(threads)})


def theirs(network, threads):
    name, _, batch, size, _, steps = network
    return run_json([os.environ["QUENCH_TORCH_PYTHON"], SOURCE / "bench/train_peer.py", name,
                     "--batch", batch, "--size", size, "--steps", steps, "--threads", threads],
                    env={**os.environ, **WAITING})


def measure(network, options):
    """Medians over rounds in which every side has its turn."""
    sides = {quanters[0]: lambda quanters=quanters: ours(network, quanters, options.threads)
             for quanters in QUANTERS}
    if "QUENCH_TORCH_PYTHON" in os.environ:
        sides["torch.ao"] = lambda: theirs(network, options.threads)
    seen = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side, run_side in sides.items():
            seen[side].append(run_side())
    for side, runs in seen.items():
        # Both steps of a run stand side by side: ratios are taken within runs.
        ratio = statistics.median(one["quantized_ms"] / one["float_ms"] for one in runs)
        step = statistics.median(one["quantized_ms"] for one in runs)
        yield {"network": network[0], "side": side, "batch": network[2],
               "float_ms": statistics.median(one["float_ms"] for one in runs),
               "quantized_ms": step, "ratio": ratio, "images_per_second": 1000 * network[2] / step}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true",
                        help="time of the processor, for a busy machine; with --threads 1")
    options = parser.parse_args()
    if options.cpu:
        os.environ["QUENCH_BENCH_CPU"] = "1"
    rows = []
    for network in NETWORKS:
        if options.only in network[0] and (SHARED / "models" / network[1]).exists():
            rows += measure(network, options)
    for one in rows:
        peer = [row for row in rows if (row["network"], row["side"]) == (one["network"], "torch.ao")]
        one["times_torch"] = one["images_per_second"] / peer[0]["images_per_second"] if peer else 0
    print_table(["network", "quanters", "float step, ms", "quantised step, ms", "ratio (at most 1.8)",
                 "images/s", "times torch.ao (at least 1.2)"],
                [[one["network"], one["side"], f"{one['float_ms']:.1f}",
                  f"{one['quantized_ms']:.1f}", f"{one['ratio']:.2f}",
                  f"{one['images_per_second']:.1f}",
                  f"{one['times_torch']:.2f}" if one["times_torch"] else ""] for one in rows])
    write_results("train.json", {"rows": rows})


if __name__ == "__main__":
    main()
