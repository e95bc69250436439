#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What we write as Paddle runs in Paddle Inference and gives what our own run gives: the network of
the demo, float and quantised, in both forms; and Paddle's own models where ../shared has them."""
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import paddle
from onnx import TensorProto, helper, numpy_helper

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "bench"))
from paddle_runtime import predictor, run  # noqa: E402

QUENCH = Path(os.environ.get("QUENCH_BINARY", SOURCE / "build/release")) / "quench"
DEMO = SOURCE / "examples/data/fashion.onnx"
IMAGES = SOURCE / "examples/data/fashion-test-images-idx3-ubyte.gz"
DATA = ["--data", IMAGES, "--mean", "72.9", "--std", "90", "--limit", "60"]
SHARED = Path(os.environ.get("QUENCH_SHARED", SOURCE.parent / "shared"))


def quench(*words):
    done = subprocess.run([str(QUENCH), *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"quench {' '.join(map(str, words))}\n{done.stderr}"


def in_paddle(program, feeds, way):
    return run(predictor(str(program), str(program.with_suffix(".pdiparams")), way), feeds)[0]


def ours(model, feeds, folder, output=0):
    words = []
    for name, array in feeds.items():
        np.save(folder / "in.npy", array)
        words += ["--input", f"{name}={folder / 'in.npy'}"]
    quench("run", model, "-o", folder / "out", "--quiet", *words)
    made = list(json.loads((folder / "out/index.json").read_text()).values())
    return np.load(folder / "out" / made[output]["file"])


def cosine(a, b):
    return float(np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b))


def expect_equal(a, b, what):
    most = float(np.abs(a - b).max() / np.abs(b).max())
    assert most < 1e-4, f"{what}: {most:.2e} of the largest number apart"
    print(f"{what}: {most:.1e}")


def expect_same_answers(a, b, what, least, least_cosine):
    same = float(np.mean(a.argmax(-1) == b.argmax(-1)))
    assert same >= least and cosine(a, b) >= least_cosine, \
        f"{what}: {same:.3f} same, cosine {cosine(a, b):.5f}"
    print(f"{what}: {100 * same:.1f} % same answers, cosine {cosine(a, b):.5f}")


def images():
    """Behind those that calibrate."""
    with gzip.open(IMAGES) as file:
        pixels = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 1, 28, 28)
    return ((pixels[60:460] - 72.9) / 90).astype(np.float32)


def check_demo(folder):
    quench("convert", DEMO, "-o", folder / "float.pdmodel")
    model = predictor(str(folder / "float.pdmodel"), str(folder / "float.pdiparams"), "plain")
    name = model.get_input_names()[0]
    feeds = {name: images()}
    expect_equal(run(model, feeds)[0], ours(DEMO, feeds, folder), "demo, float")
    quench("quantize", DEMO, "-o", folder / "int8.pdmodel", "--target", "paddle", "--quiet", *DATA)
    expected = ours(folder / "int8.pdmodel", feeds, folder)
    expect_same_answers(in_paddle(folder / "int8.pdmodel", feeds, "plain"), expected,
                        "demo, quantised, emulated", 0.99, 0.999)
    # Its integer kernels round between the layers in their own way.
    expect_same_answers(in_paddle(folder / "int8.pdmodel", feeds, "int8"), expected,
                        "demo, quantised, on integers", 0.95, 0.99)


def check_pir(folder):
    """Paddle 3 alone reads PIR; its own runtime has no quantised PIR on a CPU, so that is only read back."""
    if int(paddle.__version__.split(".")[0]) < 3:
        print("in_paddle: this Paddle reads no PIR")
        return
    quench("convert", DEMO, "-o", folder / "float_pir.json")
    model = predictor(str(folder / "float_pir.json"), str(folder / "float_pir.pdiparams"), "plain")
    feeds = {model.get_input_names()[0]: images()}
    expect_equal(run(model, feeds)[0], ours(DEMO, feeds, folder), "demo, PIR")
    quench("quantize", DEMO, "-o", folder / "q_pir.json", "--target", "paddle", "--quiet", *DATA)
    quench("quantize", DEMO, "-o", folder / "q.pdmodel", "--target", "paddle", "--quiet", *DATA)
    expect_equal(ours(folder / "q_pir.json", feeds, folder), ours(folder / "q.pdmodel", feeds, folder),
                 "demo, quantised PIR read back")
    root = SHARED / "models/paddle"
    for name, shape in (("PP-LCNet_x0_25_textline_ori", (2, 3, 80, 160)),
                        ("ch_ppocr_mobile_v2.0_cls", (2, 3, 48, 192)), ("ppocrv4_det", (1, 3, 64, 96))):
        if not (root / name).exists():
            print(f"in_paddle: no {name}; passed over")
            continue
        feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
        quench("convert", root / name, "-o", folder / "same_pir.json")
        expect_equal(in_paddle(folder / "same_pir.json", feeds, "plain"), ours(root / name, feeds, folder),
                     f"{name}, PIR")


def inner_graph(name, nodes, inputs, outputs):
    def infos(names):
        return [helper.make_tensor_value_info(each, kind, shape) for each, kind, shape in names]
    return helper.make_graph(nodes, name, infos(inputs), infos(outputs))


def control_model(path):
    """y: a layer where the sum of x is above 0, else x; z: (a, b) = (b, a + turn) while small."""
    w = np.random.default_rng(2).standard_normal((4, 4)).astype(np.float32)
    row = (TensorProto.FLOAT, [1, 4])
    taken = inner_graph("taken", [helper.make_node("MatMul", ["x", "w"], ["product"])], [],
                        [("product", *row)])
    other = inner_graph("other", [helper.make_node("Relu", ["x"], ["positive"])], [],
                        [("positive", *row)])
    body = inner_graph(
        "body",
        [helper.make_node("Cast", ["i"], ["turn"], to=TensorProto.FLOAT),
         helper.make_node("Add", ["a", "turn"], ["grown"]),
         helper.make_node("ReduceMax", ["a"], ["top"], keepdims=0),
         helper.make_node("Less", ["top", "ten"], ["small"]),
         helper.make_node("Identity", ["b"], ["was_b"])],
        [("i", TensorProto.INT64, []), ("before", TensorProto.BOOL, []), ("a", *row), ("b", *row)],
        [("small", TensorProto.BOOL, []), ("was_b", *row), ("grown", *row)])
    graph = inner_graph(
        "main",
        [helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
         helper.make_node("Greater", ["total", "zero"], ["positive_sum"]),
         helper.make_node("If", ["positive_sum"], ["y"], then_branch=taken, else_branch=other),
         helper.make_node("Loop", ["most", "", "y", "start"], ["z", "last"], body=body)],
        [("x", *row)], [("y", *row), ("z", *row), ("last", *row)])
    for name, value in (("w", w), ("zero", np.float32(0)), ("ten", np.float32(10)),
                        ("most", np.int64(5)), ("start", np.ones((1, 4), np.float32))):
        graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def check_control(folder):
    control_model(folder / "control.onnx")
    kinds = ("pdmodel", "json") if int(paddle.__version__.split(".")[0]) >= 3 else ("pdmodel",)
    for kind in kinds:
        program = folder / f"control.{kind}"
        quench("convert", folder / "control.onnx", "-o", program)
        # One predictor for all: a run must leave nothing behind for the next.
        model = predictor(str(program), str(program.with_suffix(".pdiparams")), "plain")
        for x in (np.array([[1, 2, 3, 4]], np.float32), np.array([[-1, 2, -3, 20]], np.float32),
                  np.array([[-1, 0, -3, 2]], np.float32)):
            for i, found in enumerate(run(model, {"x": x})):
                expect_equal(found, ours(folder / "control.onnx", {"x": x}, folder, i),
                             f"conditions and loops, {kind}, output {i}")


def check_families(folder):
    """Programs that Paddle wrote, a family of operators each, written again by us."""
    cases = SOURCE / "tests/unit/formats/paddle_cases"
    for record in sorted(cases.glob("*.npz")):
        program = record.with_suffix(".pdmodel")
        if not program.exists() or not program.with_suffix(".pdiparams").exists() or \
                record.stem == "more_old":
            # Paddle wants parameters, and Paddle 3 lost old operators.
            continue
        arrays = dict(np.load(record))
        feeds = {name: array for name, array in arrays.items() if name.startswith("in")}
        quench("convert", program, "-o", folder / "family.pdmodel")
        model = predictor(str(folder / "family.pdmodel"), str(folder / "family.pdiparams"), "plain")
        found = run(model, {name: feeds[name] for name in model.get_input_names()})
        wanted = [array for name, array in arrays.items() if name.startswith("out")]
        assert len(found) == len(wanted), record.stem
        for i, (a, b) in enumerate(zip(found, wanted)):
            a, b = (np.nan_to_num(each.astype(np.float64)) for each in (a, b))
            scale = max(float(np.abs(b).max(initial=0)), 1e-6)
            apart = float(np.abs(a - b).max(initial=0)) / scale
            assert a.shape == b.shape and apart < 1e-4, f"{record.stem} {i}: {apart:.2e}"
        print(f"{record.stem}: {len(wanted)} outputs as recorded")


# Families of PIR that the programs of older Paddle have no form for, and what is said of them.
NO_PROGRAM = {"array": "it stacks what its turns make"}


def check_refused(model, out, reason):
    done = subprocess.run([str(QUENCH), "convert", str(model), "-o", str(out)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 4 and reason in done.stderr and not out.exists(), done.stderr
    print(f"{model.stem}, from PIR: refused, as {reason}")


def check_pir_families(folder):
    """PIR that Paddle wrote, a family of operators each, written by us as the programs of older Paddle."""
    if int(paddle.__version__.split(".")[0]) < 3:
        return
    cases = SOURCE / "tests/unit/formats/paddle_cases"
    for source in sorted((cases / "pir").glob("*.pdiparams")):
        record = source.with_suffix(".npz")  # where versions differ
        arrays = dict(np.load(record if record.exists() else cases / record.name))
        if source.stem in NO_PROGRAM:
            check_refused(source.with_suffix(".json"), folder / "refused.pdmodel", NO_PROGRAM[source.stem])
            continue
        quench("convert", source.with_suffix(".json"), "-o", folder / "family.pdmodel")
        model = predictor(str(folder / "family.pdmodel"), str(folder / "family.pdiparams"), "plain")
        found = run(model, {name: arrays[name] for name in model.get_input_names()})
        wanted = [array for name, array in arrays.items() if name.startswith("out")]
        assert len(found) == len(wanted), source.stem
        for i, (a, b) in enumerate(zip(found, wanted)):
            scale = max(float(np.abs(b.astype(np.float64)).max(initial=0)), 1e-6)
            apart = float(np.abs(a.astype(np.float64) - b).max(initial=0)) / scale
            assert a.shape == b.shape and apart < 1e-4, f"{source.stem} {i}: {apart:.2e}"
        print(f"{source.stem}, from PIR: {len(wanted)} outputs as recorded")


def check_shared(folder):
    root = SHARED / "models/paddle"
    if not root.exists():
        print("in_paddle: no ../shared/models/paddle; Paddle's own models are passed over")
        return
    for name, shape in (("ch_ppocr_mobile_v2.0_cls", (2, 3, 48, 192)), ("ppocrv4_det", (1, 3, 64, 96))):
        feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
        program = root / name / "inference.pdmodel"
        expect_equal(ours(root / name, feeds, folder), in_paddle(program, feeds, "plain"),
                     f"{name}, float")
        quench("convert", root / name, "-o", folder / "same.pdmodel")
        expect_equal(in_paddle(folder / "same.pdmodel", feeds, "plain"),
                     in_paddle(program, feeds, "plain"), f"{name}, written again")


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_demo(Path(folder))
        check_pir(Path(folder))
        check_control(Path(folder))
        check_families(Path(folder))
        check_pir_families(Path(folder))
        check_shared(Path(folder))


if __name__ == "__main__":
    main()
