# SPDX-License-Identifier: Apache-2.0
"""Samples of different sizes: every command takes them, whatever their order and the batch."""
import csv
import json
import random
import unittest

from harness import CliTest, read_npy, write_npy

SIZES = [(8, 8), (8, 8), (12, 9), (20, 16), (20, 16), (5, 31), (9, 9), (40, 40)]
SAMPLES = 24


def shapes(order):
    """The sizes of the samples: as they come, rising or falling."""
    all_sizes = [SIZES[i % len(SIZES)] for i in range(SAMPLES)]
    if order == "mixed":
        return all_sizes
    return sorted(all_sizes, key=lambda s: s[0] * s[1], reverse=order == "falling")


class Sizes(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        source = random.Random(11)
        for order in ("mixed", "rising", "falling"):
            folder = cls.dir / order
            folder.mkdir()
            for i, (height, width) in enumerate(shapes(order)):
                write_npy(folder / f"s{i:02}.npy", "<f4", (1, 3, height, width),
                          [source.gauss(0, 1) for _ in range(3 * height * width)])
        write_npy(cls.dir / "classes.npy", "<i8", (SAMPLES,), [i % 10 for i in range(SAMPLES)])

    def test_quantize(self):
        for order in ("mixed", "rising", "falling"):
            for batch in ((), ("--batch", "1"), ("--batch", "8")):
                report = self.run_json("quantize", "sizes.onnx", "-o", "q.onnx", "--data", order,
                                       "--report-json", "report.json", *batch)
                self.assertEqual(report["calibration_samples"] + report["validation_samples"],
                                 SAMPLES)
                sqnr = report["outputs"][0]["sqnr"]
                self.assertGreater(sqnr, 25, (order, batch))
                # What was judged is what another command measures on the same samples.
                held = self.dir / f"{order}_held"
                held.mkdir(exist_ok=True)
                for file in sorted((self.dir / order).iterdir())[-report["validation_samples"]:]:
                    (held / file.name).write_bytes(file.read_bytes())
                again = self.run_json("eval", "q.onnx", "--reference", "sizes.onnx", "--data",
                                      held, "--metric", "sqnr", "--batch", "3")
                self.assertAlmostEqual(again["outputs"][0]["sqnr"], sqnr, places=2)

    def test_statistics_do_not_depend_on_the_batch(self):
        ranges = {}
        for batch in (1, 5, 16):
            folder = self.dir / f"st{batch}"
            self.run_quench("analyze", "statistics", "sizes.onnx", "-o", folder, "--data", "mixed",
                            "--batch", batch)
            with open(folder / "statistic.csv", newline="", encoding="utf-8") as file:
                ranges[batch] = list(csv.DictReader(file))
        pixels = [value for file in (self.dir / "mixed").iterdir()
                  for value in read_npy(file)[1]]
        row = next(each for each in ranges[1] if each["Var Name"] == "x")
        self.assertEqual(row["FP32 Min"], f"{min(pixels):.4f}")
        self.assertEqual(row["FP32 Max"], f"{max(pixels):.4f}")
        self.assertEqual(row["FP32 Mean"], f"{sum(pixels) / len(pixels):.4f}")
        self.assertEqual(ranges[1], ranges[5])
        self.assertEqual(ranges[1], ranges[16])

    def test_eval_gives_every_sample_its_own_label(self):
        hits = 0
        for i, file in enumerate(sorted((self.dir / "falling").iterdir())):
            self.run_quench("run", "sizes.onnx", "--input", f"x={file}", "-o", "one")
            scores = read_npy(self.dir / "one" / "scores.npy")[1]
            hits += scores.index(max(scores)) == i % 10
        for batch in (1, 8):
            result = self.run_json("eval", "sizes.onnx", "--data", "falling", "--labels",
                                   "classes.npy", "--metric", "top1", "--batch", batch)
            self.assertEqual(result["samples"], SAMPLES)
            self.assertAlmostEqual(result["outputs"][0]["top1"],
                                   100 * hits / SAMPLES, places=3)

    def test_the_other_commands(self):
        self.run_quench("calibrate", "sizes.onnx", "-o", "s.stats", "--data", "falling")
        self.run_quench("quantize", "sizes.onnx", "-o", "w.onnx", "--type", "weight", "--data",
                        "falling", "--gptq")
        self.run_quench("compare", "sizes.onnx", "w.onnx", "--data", "rising", "--batch", "8")
        results = [self.run_json("analyze", "sensitivity", "sizes.onnx", "-o", "an", "--data",
                                 "mixed", "--batch", batch) for batch in (1, 7)]
        ranks = [[(layer["layer"], round(layer["sqnr"], 3)) for layer in result["layers"]]
                 for result in results]
        self.assertEqual(*ranks)

    def test_a_fixed_batch_names_the_samples_that_do_not_fit(self):
        for command in (("quantize", "fixed_sizes.onnx", "-o", "f.onnx"),
                        ("calibrate", "fixed_sizes.onnx", "-o", "f.stats")):
            result = self.run_quench(*command, "--data", "mixed", expect=3)
            self.assertRegex(result.stderr, r"s\d\d.npy has 'x' float32\[1,3,\d+,\d+\], but "
                             r"s\d\d.npy has 'x' float32\[1,3,\d+,\d+\]; ")
        self.assertFalse((self.dir / "f.onnx").exists())


if __name__ == "__main__":
    unittest.main()
