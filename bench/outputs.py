#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The observers that `quantize` chooses beside plain min-max, output by output, on networks that
have no labels: the SQNR in dB of each float output, in ONNX Runtime, against the float model.

The samples are cut at random into halves, several times: one calibrates, the other is scored. There
are no recordings here: the audio networks get made-up sounds (chords, sweeps, bursts of noise and
silence). --write puts the table into docs/results.md."""
import argparse
import os
import pathlib
import tempfile

import numpy as np

import common
from accuracy_ort import DATA, FACE, MODELS, OCR_DET, open_session, samples

BUILD = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release"))
TITLE = "Chosen observers beside min-max"
TEXT = """Made by `bench/outputs.py --write`. The samples of each network are cut at random into
halves, {cuts} times: one half calibrates, the other is scored in ONNX Runtime. For each float
output: the least SQNR in dB over the cuts with `--activation-observer min_max` and as `quench
quantize` chooses, the mean and the least gain of the choice, and how often what was chosen (behind
the stroke: `unclipped_layers`). The audio networks get made-up sounds.

"""
MOST = 64  # samples of a network


def sound(rng, length, rate):
    """A chord whose notes come and go, a sweep, a burst of noise, or silence with a hiss."""
    t = np.arange(length) / rate
    x = rng.normal(0, 10 ** rng.uniform(-4, -2), length)
    for _ in range(rng.integers(0, 5)):
        pitch = 2 ** rng.uniform(6, 11)
        start, end = np.sort(rng.uniform(0, length / rate, 2))
        shape = np.where((t > start) & (t < end), np.exp(-(t - start) * rng.uniform(1, 20)), 0)
        phase = 2 * np.pi * pitch * (t + rng.choice([0, 0.2]) * t * t)
        for overtone in range(1, rng.integers(2, 9)):
            x += rng.uniform(0.05, 0.5) / overtone * shape * np.sin(overtone * phase)
    burst = x[rng.integers(0, length):][:length // 8]
    burst += rng.normal(0, rng.uniform(0, 0.3), len(burst))
    return np.clip(x, -1, 1).astype(np.float32)


def spectrum(audio):
    """Log power of frames of 32 ms, as speech models read it."""
    frames = np.lib.stride_tricks.sliding_window_view(audio, 512)[::256] * np.hanning(512)
    return np.log10(np.maximum(np.abs(np.fft.rfft(frames)) ** 2, 1e-12)).astype(np.float32)


def images(path, flags, limit=MOST):
    def read(model, folder):
        x = samples(model, folder, path, "--limit", limit, *flags)
        return {open_session(model).get_inputs()[0].name: x}
    return read


def speech(_model, _folder):
    rng = np.random.default_rng(1)
    return {"degraded_audio": np.stack([spectrum(sound(rng, 32000, 16000))[None]
                                        for _ in range(MOST)]),
            "rater_embed": rng.normal(0, 1, (MOST, 64)).astype(np.float32)}


def music(_model, _folder):
    rng = np.random.default_rng(2)
    return {"serving_default_input_2:0": np.stack([sound(rng, 43844, 22050)[:, None]
                                                   for _ in range(MOST)])}


def sentences(_model, _folder):
    return {name: np.load(DATA / f"stsb/calib_{name}.npy")[:MOST]
            for name in ("input_ids", "attention_mask")}


WAYS = {"min_max": ["--activation-observer", "min_max"], "chosen": []}
NETWORKS = [
    ("rfb320", "rfb320/rfb320.onnx", images(DATA / "faces", FACE)),
    ("ppocrv3_det", "ppocrv3_det.onnx", images(DATA / "textlines/pages", OCR_DET)),
    ("ppocrv4_det", "ppocrv4_det.onnx", images(DATA / "textlines/pages", OCR_DET)),
    ("plcmos_v2", "plcmos_v2.onnx", speech),
    ("basic_pitch", "basic_pitch.onnx", music),
    ("use_lite", "use_lite.onnx", sentences),
]


def run_all(path, feeds):
    """Every float output by name, one sample a run."""
    session = open_session(path)
    names = [each.name for each in session.get_outputs() if "float" in each.type]
    count = len(next(iter(feeds.values())))
    runs = [session.run(names, {name: x[i:i + 1] for name, x in feeds.items()})
            for i in range(count)]
    return {name: [run[k] for run in runs] for k, name in enumerate(names)}


def sqnr(actual, expected):
    noise = sum(float(np.sum((a.astype(np.float64) - e) ** 2)) for a, e in zip(actual, expected))
    signal = sum(float(np.sum(e.astype(np.float64) ** 2)) for e in expected)
    return 10 * np.log10(signal / noise) if noise > 0 else float("inf")


def cut(feeds, rng):
    """Two halves at random."""
    count = len(next(iter(feeds.values())))
    order = rng.permutation(count)
    return [{name: x[part] for name, x in feeds.items()}
            for part in (order[:count // 2], order[count // 2:])]


def quantized(model, feeds, folder, *flags):
    """The written model's path, and what `quantize` says of it."""
    np.savez(folder / "calibrate.npz", **feeds)
    out = folder / "int8.onnx"
    report = common.run_json([BUILD / "quench", "quantize", model, "-o", out, "--data",
                              folder / "calibrate.npz", "--quiet", "--json", *flags])
    return out, report


def measure(model, feeds, cuts, folder):
    """SQNR by output and way, a number for each cut; and what was chosen."""
    found, chosen = {}, []
    rng = np.random.default_rng(0)
    for _ in range(cuts):
        calibrating, scored = cut(feeds, rng)
        expected = run_all(model, scored)
        for way, flags in WAYS.items():
            out, report = quantized(model, calibrating, folder, *flags)
            if way == "chosen":
                chosen += [f"{trial['observer']}/{trial['unclipped_layers']}"
                           for trial in report["observer_trials"] if trial["chosen"]]
            actual = run_all(out, scored)
            for name, values in expected.items():
                found.setdefault(name, {}).setdefault(way, []).append(sqnr(actual[name], values))
    return found, chosen


def rows(name, samples_in_all, found, chosen):
    for output, ways in found.items():
        gain = np.array(ways["chosen"]) - np.array(ways["min_max"])
        yield [name, str(samples_in_all), output, f"{min(ways['min_max']):.1f}",
               f"{min(ways['chosen']):.1f}",
               f"{gain.mean():+.1f}", f"{gain.min():+.1f}",
               ", ".join(f"{each}: {chosen.count(each)}" for each in sorted(set(chosen)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="networks whose name contains one of A,B")
    parser.add_argument("--cuts", type=int, default=4)
    parser.add_argument("--write", action="store_true", help="put the table into docs/results.md")
    options = parser.parse_args()
    table = []
    for name, file, read in NETWORKS:
        wanted = not options.only or any(word in name for word in options.only.split(","))
        if not wanted or not (MODELS / file).exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            feeds = read(MODELS / file, pathlib.Path(folder))
            found = measure(MODELS / file, feeds, options.cuts, pathlib.Path(folder))
        table += list(rows(name, len(next(iter(feeds.values()))), *found))
    titles = ["network", "samples", "output", "min_max", "chosen", "mean gain", "least gain",
              "what"]
    common.print_table(titles, table)
    common.write_results("outputs.json", {"rows": table})
    if options.write:
        common.write_section(common.SOURCE / "docs/results.md", TITLE,
                             TEXT.format(cuts=options.cuts) + common.markdown_table(titles, table))


if __name__ == "__main__":
    main()
