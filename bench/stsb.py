#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentence similarity (STS-B) of the encoder use_lite.onnx: float, and every form of it that
`quench quantize --type weight|dynamic` writes, by our engine and by ONNX Runtime. The peer is ONNX
Runtime's own quantize_dynamic; --time times both dynamic files in ONNX Runtime, in turns.

    bench/stsb.py [--time] [--limit PAIRS]
"""
import argparse
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np
import onnxruntime
from onnxruntime.quantization import quantize_dynamic

import common

PROGRAM = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release")) / "quench"
MODEL = common.SHARED / "models/use_lite.onnx"
DATA = common.SHARED / "data/stsb"
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
        run.run(None, {name: value[at:at + 100] for name, value in feeds.items()})[0]
        for at in range(0, rows, 100)])


def embed_ours(path, feeds, folder):
    parts = []
    for at in range(0, len(feeds["input_ids"]), 500):
        words = []
        for name, value in feeds.items():
            np.save(folder / f"{name}.npy", value[at:at + 500])
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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--limit", type=int, default=1500)
    arguments = parser.parse_args()
    scores = np.load(DATA / "dev_scores.npy")[:arguments.limit]
    feeds = {name: np.load(DATA / f"dev_{name}.npy")[:2 * arguments.limit]
             for name in ("input_ids", "attention_mask")}
    rows, results = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        reference = embed_theirs(MODEL, feeds)
        base = pearson(reference, scores)
        whole = float_bytes()
        rows.append(["float", f"{base:.4f}", "", "", "", ""])
        peer = folder / "peer.onnx"
        quantize_dynamic(MODEL, peer, per_channel=True)
        theirs = embed_theirs(peer, feeds)
        rows.append(["ONNX Runtime's dynamic", f"{pearson(theirs, scores):.4f}",
                     f"{pearson(theirs, scores) - base:+.4f}", f"{cosine(theirs, reference):.5f}",
                     "", ""])
        for form, words in FORMS.items():
            out = folder / f"{form.replace(' ', '_').replace(',', '')}.onnx"
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
        common.print_table(["form", "Pearson", "against float", "cosine", "ours and theirs",
                            "weights"], rows)
        print(f"float weights: {whole} bytes")
        if arguments.time:
            mine, other, plain = time_in_turns([folder / "dynamic_ALWC.onnx", peer, MODEL])
            print(f"ONNX Runtime, 128 tokens, ms: ours {mine:.2f}, its own {other:.2f}, "
                  f"float {plain:.2f}")
            results["ms"] = {"ours": mine, "peer": other, "float": plain}
    common.write_results("stsb.json", results)


if __name__ == "__main__":
    main()
