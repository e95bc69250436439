# SPDX-License-Identifier: Apache-2.0
"""quench analyze statistics: what it writes, and what it does about bad input."""
import csv
import re
import unittest

import harness

PLOTS = [f"{kind}_{what}_{form}.pdf" for kind in ("fp", "quantized")
         for what in ("activation", "weight") for form in ("boxplot", "histplot")]
COLUMNS = ["Var Name", "Var Type", "Corresponding Weight Name"] + [
    f"{kind} {what}" for kind in ("FP32", "Quantized", "Diff", "Integer")
    for what in ("Min", "Max", "Mean", "Std")]


class StatisticsTest(harness.CliTest):
    def test_table_and_plots(self):
        self.run_quench("analyze", "statistics", "model.onnx", "--data", "images.npy", "-o",
                        "stats")
        with open(self.dir / "stats/statistic.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), COLUMNS)
        self.assertEqual([(row["Var Type"], row["Var Name"]) for row in rows],
                         [("Activation", "features"), ("Activation", "x"), ("Weight", "filters"),
                          ("Weight", "weights")])
        self.assertEqual(rows[1]["Corresponding Weight Name"], "filters")
        _, seen = harness.read_npy(self.dir / "images.npy")
        self.assertAlmostEqual(float(rows[1]["FP32 Min"]), min(seen), 3)
        self.assertAlmostEqual(float(rows[1]["FP32 Max"]), max(seen), 3)
        self.assertAlmostEqual(float(rows[1]["FP32 Mean"]), sum(seen) / len(seen), 3)
        for row in rows:
            self.assertLess(abs(float(row["Diff Mean"])), 0.05)
            self.assertGreater(float(row["Diff Std"]), 0)
        for name in PLOTS:
            content = (self.dir / "stats" / name).read_bytes()
            self.assertTrue(content.startswith(b"%PDF-"), name)
            pages = 2 if name.endswith("histplot.pdf") else 1
            self.assertEqual(len(re.findall(rb"/Type\s*/Page\b", content)), pages, name)
            self.assertNotIn(b"/Subtype /Image", content)

    def read(self, folder):
        with open(self.dir / folder / "statistic.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_difference_is_float_less_quantised(self):
        self.run_quench("analyze", "statistics", "residual.onnx", "--data", "images.npy", "-o",
                        "coarse", "--weight-bits", "3", "--activation-bits", "3")
        moved = set()
        for row in self.read("coarse"):
            numbers = {name: float(row[f"{name} Mean"]) for name in ("FP32", "Quantized", "Diff")}
            self.assertAlmostEqual(numbers["FP32"] - numbers["Quantized"], numbers["Diff"], 3)
            if abs(numbers["Diff"]) > 0.002:
                moved.add(row["Var Type"])
        self.assertEqual(moved, {"Activation", "Weight"}, "nothing tells the direction")

    def test_integers(self):
        for bits in (8, 4):
            self.run_quench("analyze", "statistics", "model.onnx", "--data", "images.npy", "-o",
                            "whole", "--weight-bits", bits)
            most = 2 ** (bits - 1) - 1
            for row in self.read("whole"):
                low, high, mean, std = (float(row[f"Integer {what}"])
                                        for what in ("Min", "Max", "Mean", "Std"))
                self.assertEqual((low, high), (round(low), round(high)))
                if row["Var Type"] == "Weight":
                    self.assertTrue(-most - 1 <= low < high <= most, row)
                    self.assertGreaterEqual(max(-low, high), most)
                    continue
                self.assertTrue(-128 <= low < high <= 255 and 100 < high - low <= 255, row)
                # Integers are the quantised numbers on another scale.
                first, last, middle, spread = (float(row[f"Quantized {what}"])
                                               for what in ("Min", "Max", "Mean", "Std"))
                scale = (last - first) / (high - low)
                self.assertAlmostEqual((mean - low) * scale, middle - first, 2)
                self.assertAlmostEqual(std * scale, spread, 2)

    def test_branches(self):
        self.run_quench("analyze", "statistics", "branch.onnx", "--data", "images.npy", "-o",
                        "branches")
        with open(self.dir / "branches/statistic.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["Var Name"] for row in rows], ["chosen", "x", "first_w", "last_w"])
        self.assertLess(abs(float(rows[0]["Diff Mean"])), 0.05)

    def test_names_of_any_kind(self):
        self.run_quench("analyze", "statistics", "names.onnx", "--data", "images.npy", "-o", "odd")
        with open(self.dir / "odd/statistic.csv", newline="", encoding="utf-8") as file:
            names = [row["Var Name"] for row in csv.DictReader(file)]
        self.assertEqual(names, ['mid,"dle"', "x", 'w,"1"\n<b>', "w2"])

    def test_folder_that_cannot_be_made(self):
        error = self.run_quench("analyze", "statistics", "model.onnx", "--data", "images.npy", "-o",
                                "model.onnx/deep", expect=3).stderr
        self.assertIn("model.onnx/deep", error)

    def test_no_data(self):
        error = self.run_quench("analyze", "statistics", "model.onnx", expect=2).stderr
        self.assertIn("--data", error)


if __name__ == "__main__":
    unittest.main()
