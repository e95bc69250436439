#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises every network below, as Q/DQ and as QLinear operators, asks `lint` what will run on
integers, and compares the answer with the graph that ONNX Runtime makes of the file. Outputs must stay
near the float model's, and those of the two forms near each other."""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile

SKIP = 77


def skip(reason):
    """Skipping is for laptops; the machine that guards main must have everything."""
    print(f"skipped: {reason}")
    sys.exit(1 if os.environ.get("CI") == "true" else SKIP)


try:
    import numpy as np
    import onnx
    import onnxruntime as ort
except ImportError as missing:
    skip(f"{missing}; configure with -DQUENCH_PYTHON=<python that has onnxruntime and onnx>")

# Integer operators of ONNX Runtime, and the operator each stands for.
INTEGER = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul", "MatMulIntegerToFloat": "MatMul",
           "QGemm": "Gemm", "QLinearAdd": "Add", "QLinearMul": "Mul", "QLinearConcat": "Concat",
           "QLinearAveragePool": "AveragePool", "QLinearGlobalAveragePool": "GlobalAveragePool",
           "QLinearSigmoid": "Sigmoid", "QLinearLeakyRelu": "LeakyRelu"}
LAYERS = {"Conv", "MatMul", "Gemm"}
FUSED = {"FusedConv", "FusedMatMul", "FusedGemm"}
# The least cosine of outputs. The data are noise, for which no network was made: this finds what is
# broken, not what is bad.
COSINE = 0.8
# Both forms run the same kernels; only the order of a few roundings differs.
FORMS_COSINE = 0.9999
FORMS = ("qdq", "qoperator")
# Networks whose layers must all but run on integers, and which take noise of the shapes below.
NETWORKS = ["ad01_autoencoder_bn", "dscnn_kws_bn", "mobilenet_v1_025_vww_bn", "mobilenet_v2",
            "mobilenet_v2_bn_features", "pplcnet_x0_25_textline_ori", "ppocr_v2_cls", "ppocrv4_det",
            "resnet8_cifar10_bn", "rfb320/rfb320", "rfb320/rfb320_no_postproc", "squeezenet1.1",
            "use_lite"]


def session(model, optimised=None, level=ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    if optimised:
        options.optimized_model_filepath = str(optimised)
    return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def feeds_for(run, rng):
    feeds = {}
    sizes = [1, 3, 64, 192]
    for spec in run.get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else sizes[min(i, 3)] for i, d in enumerate(spec.shape)]
        if spec.type == "tensor(float)":
            feeds[spec.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            kind = np.int32 if spec.type == "tensor(int32)" else np.int64
            feeds[spec.name] = rng.integers(1, 50, shape).astype(kind)
    return feeds


def measure(prepared, values, feeds, folder):
    """Minimum and maximum of the values, from a run of ONNX Runtime."""
    model = onnx.load(str(prepared))
    known = {o.name for o in model.graph.output} | {i.name for i in model.graph.input}
    for name in values:
        if name not in known:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    tapped = folder / "tapped.onnx"
    onnx.save(model, str(tapped))
    run = session(tapped, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    ranges = {}
    for feed in feeds:
        wanted = [v for v in values if v not in feed]
        got = dict(zip(wanted, run.run(wanted, feed))) | feed
        for name in values:
            low, high = ranges.get(name, (0.0, 0.0))
            ranges[name] = (min(low, float(got[name].min())), max(high, float(got[name].max())))
    return ranges


def count(path):
    counts = collections.Counter(n.op_type for n in onnx.load(str(path)).graph.node)
    integers = collections.Counter()
    for name, op in INTEGER.items():
        integers[op] += counts[name]
    return counts, integers


def call(tool, *words):
    done = subprocess.run([tool, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def cosine(a, b):
    a, b = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-30))


def expected(lines):
    """What lint says, by operator."""
    counts = collections.Counter()
    for _, op, kind, _ in lines:
        op = INTEGER.get(op, op)
        if kind == "int" and op in INTEGER.values():
            counts[op] += 1
    return counts


def check(tool, path, folder):
    """Quantises one model in every form; yields what is wrong."""
    prepared, ranges = folder / "p.onnx", folder / "r.txt"
    call(tool, "prepare", path, prepared)
    values = [w[1] for w in call(tool, "plan", prepared, "onnxruntime") if w[0] == "value"]
    plain = session(path)
    rng = np.random.default_rng(7)
    feeds = [feeds_for(plain, rng) for _ in range(4)]
    found = measure(prepared, values, feeds, folder)
    ranges.write_text("".join(f"{low} {high} {name}\n" for name, (low, high) in found.items()))
    wanted = [w.name for w in plain.get_outputs()]
    reference = plain.run(wanted, feeds[0])
    first = None
    for form in FORMS:
        out = folder / f"{form}.onnx"
        call(tool, "quantize", prepared, "onnxruntime", ranges, out, form)
        got = session(out, folder / "o.onnx").run(wanted, feeds[0])
        faults = check_form(tool, out, folder / "o.onnx")
        near = min(map(cosine, reference, got))
        if near < COSINE:
            faults.append(f"cosine {near:.4f}")
        first = first or got
        both = min(map(cosine, first, got))
        if both < FORMS_COSINE:
            faults.append(f"cosine with the Q/DQ form {both:.6f}")
        print(f"{path.name} {form}: cosine {near:.4f}")
        yield from (f"{path.name} {form}: {fault}" for fault in faults)


def check_form(tool, out, optimised):
    """What lint says against what is in the optimised graph."""
    counts, integers = count(optimised)
    said = expected(call(tool, "lint", out, "onnxruntime"))
    layers = sum(counts[op] for op in LAYERS | FUSED) + sum(integers[op] for op in LAYERS)
    share = sum(integers[op] for op in LAYERS) / max(layers, 1)
    print(f"  {share:.0%} of {layers} layers on integers; {dict(+integers)}")
    if os.environ.get("VERBOSE"):
        print(dict(counts))
    faults = []
    if +integers != +said:
        faults.append(f"lint says {dict(+said)}, ONNX Runtime runs {dict(+integers)}")
    if share < 0.95:
        faults.append(f"only {share:.0%} of the layers run on integers")
    return faults


def main():
    shared = pathlib.Path(os.environ["QUENCH_SHARED"]) / "models"
    example = pathlib.Path(os.environ["QUENCH_SOURCE"]) / "examples/data/fashion.onnx"
    models = [example, *(shared / f"{name}.onnx" for name in NETWORKS)]
    for absent in [path for path in models if not path.exists()]:
        print(f"{absent} is absent: passed over")
        models.remove(absent)
    faults = []
    for path in models:
        with tempfile.TemporaryDirectory() as folder:
            faults += check(sys.argv[1], path, pathlib.Path(folder))
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
