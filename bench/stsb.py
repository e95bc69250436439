#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentence similarity (STS-B) of the encoder use_lite.onnx: float, and every form of it that
`quench quantize --type weight|dynamic` writes, by our engine and by ONNX Runtime. The peer is ONNX
Runtime's own quantize_dynamic. --time times both dynamic files in ONNX Runtime, and float beside
dynamic in our engine, for use_lite and for a generated BERT-base: batch 1, 128 tokens, in turns.

    bench/stsb.py [--time | --time-only] [--limit PAIRS]
"""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import onnxruntime
from onnxruntime.quantization import quantize_dynamic

import common

PROGRAM = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release")) / "quench"
MODEL = common.SHARED / "models/use_lite.onnx"
DATA = common.SHARED / "data/stsb"
# Sentences a run. Ranges of activations are those of a run: where engines differ by one rounding in
# the one that decides a range, all its sentences see that.
BATCH = 50
FORMS = {
    "8 bit": ["--type", "weight", "--bits", "8"],
    "4 bit, groups of 64": ["--type", "weight", "--bits", "4", "--group-size", "64"],
    "dynamic ALWC": ["--type", "dynamic"],
    "dynamic ACWL": ["--type", "dynamic", "--strategy", "ACWL"],
}


def pearson(embeddings, scores):
    a, b = embeddings[0::2], embeddings[1::2]
    near = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return float(np.corrcoef(near, scores)[0, 1])


def cosine(a, b):
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    # Exact products of dequantised weights; without it 8-bit ones are taken for granted.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def embed_theirs(path, feeds):
    run = session(path)
    rows = len(feeds["input_ids"])
    return np.concatenate([
        run.run(None, {name: value[at:at + BATCH] for name, value in feeds.items()})[0]
        for at in range(0, rows, BATCH)])  # as ours: ranges are those of a batch


def embed_ours(path, feeds, folder):
    parts = []
    for at in range(0, len(feeds["input_ids"]), BATCH):
        words = []
        for name, value in feeds.items():
            np.save(folder / f"{name}.npy", value[at:at + BATCH])
            words += ["--input", f"{name}={folder / name}.npy"]
        common.run([PROGRAM, "run", path, *words, "-o", folder / "out", "--quiet"])
        parts.append(np.load(folder / "out/embedding.npy"))
    return np.concatenate(parts)


def float_bytes():
    import onnx  # only here: reading the sizes of constants
    model = onnx.load(str(MODEL), load_external_data=False)
    return sum(len(each.raw_data) or 4 * len(each.float_data) for each in model.graph.initializer
               if each.data_type == 1)


def time_in_turns(paths, rounds=9):
    """Median milliseconds a sentence of 128 tokens, the files one after the other in every round."""
    feeds = {"input_ids": np.ones((1, 128), np.int64), "attention_mask": np.ones((1, 128), np.int64)}
    runs = [session(path) for path in paths]
    times = [[] for _ in paths]
    for _ in range(rounds):
        for run, kept in zip(runs, times):
            run.run(None, feeds)
            began = time.perf_counter()
            for _ in range(10):
                run.run(None, feeds)
            kept.append((time.perf_counter() - began) * 100)
    return [statistics.median(kept) for kept in times]


def our_times(model, dynamic, rounds=3):
    """Median milliseconds of both files in our engine, the least of some rounds in turns. Each runs
    in a process of its own: one after the other they would drive each other out of the cache."""
    shapes = [word for value in common.run_json([PROGRAM, "inspect", model, "--json"])["inputs"]
              for word in ("--shape", f"{value['name']}=1,128")]
    found = [[], []]
    for _ in range(rounds):
        for path, kept in zip((model, dynamic), found):
            kept.append(common.run_json([PROGRAM, "bench", path, "--threads", "2", "--runs", "30",
                                         "--json", *shapes])["median_ms"])
    return [min(kept) for kept in found]


def measure_accuracy(folder, limit, goals):
    scores = np.load(DATA / "dev_scores.npy")[:limit]
    feeds = {name: np.load(DATA / f"dev_{name}.npy")[:2 * limit]
             for name in ("input_ids", "attention_mask")}
    rows, results = [], {}
    reference = embed_theirs(MODEL, feeds)
    base = pearson(reference, scores)
    rows.append(["float", f"{base:.4f}", "", "", "", ""])
    theirs = embed_theirs(peer_of(folder), feeds)
    rows.append(["ONNX Runtime's dynamic", f"{pearson(theirs, scores):.4f}",
                 f"{pearson(theirs, scores) - base:+.4f}", f"{cosine(theirs, reference):.5f}",
                 "", ""])
    for form, words in FORMS.items():
        out = folder / "form.onnx"
        report = common.run_json([PROGRAM, "quantize", MODEL, "-o", out, *words, "--json"])
        share = sum(each["bytes"] for each in report["weights"]) / sum(
            4 * each["elements"] for each in report["weights"])
        theirs = embed_theirs(out, feeds)
        ours = embed_ours(out, feeds, folder)
        found = pearson(theirs, scores)
        rows.append([form, f"{found:.4f}", f"{found - base:+.4f}",
                     f"{cosine(theirs, reference):.5f}", f"{cosine(ours, theirs):.6f}",
                     f"{share:.1%}"])
        results[form] = {"pearson": found, "drop": base - found, "share": share,
                         "cosine": cosine(theirs, reference),
                         "ours_and_theirs": cosine(ours, theirs)}
        if form.startswith("dynamic"):
            goals += [(f"{form}: Pearson lost", abs(base - found), 0.003),
                      (f"{form}: 1 - cosine", 1 - results[form]["cosine"], 0.003),
                      (f"{form}: share of the float weights", share, 0.27)]
        goals.append((f"{form}: 1 - cosine of ours and theirs",
                      1 - results[form]["ours_and_theirs"], 0.0001))
    common.print_table(["form", "Pearson", "against float", "cosine", "ours and theirs", "weights"],
                       rows)
    print(f"float weights: {float_bytes()} bytes")
    return results


def peer_of(folder):
    peer = folder / "peer.onnx"
    if not peer.exists():
        quantize_dynamic(MODEL, peer, per_channel=True)
    return peer


def dynamic_of(model, out):
    if not out.exists():
        common.run([PROGRAM, "quantize", model, "-o", out, "--type", "dynamic", "--quiet"])
    return out


def measure_time(folder, goals):
    own = dynamic_of(MODEL, folder / "dynamic.onnx")
    mine, other, plain = time_in_turns([own, peer_of(folder), MODEL])
    print(f"ONNX Runtime, use_lite, ms: ours {mine:.2f}, its own {other:.2f}, float {plain:.2f}")
    goals.append(("in ONNX Runtime, to its own file", mine / other, 1))
    results = {"ort": {"ours": mine, "peer": other, "float": plain}}
    bert = common.generated(PROGRAM.parent, "bert-base.onnx", ["bert-base"])
    pairs = {"use_lite": (MODEL, own, 0.7),
             "bert-base": (bert, dynamic_of(bert, common.RESULTS / "bert-dynamic.onnx"), 0.45)}
    for name, (model, dynamic, most) in pairs.items():
        real, fast = our_times(model, dynamic)
        print(f"our engine, {name}, ms: float {real:.2f}, dynamic {fast:.2f}")
        goals.append((f"our engine, {name}: dynamic to float", fast / real, most))
        results[name] = {"float": real, "dynamic": fast}
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--time-only", action="store_true")
    parser.add_argument("--limit", type=int, default=1500)
    arguments = parser.parse_args()
    results, goals = {}, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if not arguments.time_only:
            results["accuracy"] = measure_accuracy(folder, arguments.limit, goals)
        if arguments.time or arguments.time_only:
            results["ms"] = measure_time(folder, goals)
    common.print_table(["goal", "measured", "at most"],
                       [[what, f"{value:.4f}", f"{most}"] for what, value, most in goals])
    common.write_results("stsb.json", results)
    return 1 if any(value > most for _, value, most in goals) else 0


if __name__ == "__main__":
    sys.exit(main())
