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
import paddle

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


def ours(model, feeds, folder):
    words = []
    for name, array in feeds.items():
        np.save(folder / "in.npy", array)
        words += ["--input", f"{name}={folder / 'in.npy'}"]
    quench("run", model, "-o", folder / "out", "--quiet", *words)
    first = next(iter(json.loads((folder / "out/index.json").read_text()).values()))
    return np.load(folder / "out" / first["file"])


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


def check_families(folder):
    """Programs that Paddle wrote, a family of operators each, written again by us."""
    cases = SOURCE / "tests/unit/formats/paddle_cases"
    for record in sorted(cases.glob("*.npz")):
        program = record.with_suffix(".pdmodel")
        if not program.exists() or not program.with_suffix(".pdiparams").exists() or \
                record.stem in ("control", "more_old"):
            # Blocks inside are not written, Paddle wants parameters, and Paddle 3 lost old operators.
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
        check_families(Path(folder))
        check_shared(Path(folder))


if __name__ == "__main__":
    main()
