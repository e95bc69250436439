# SPDX-License-Identifier: Apache-2.0
"""quench analyze of weight-only and dynamic quantisation: the same questions, the same answers."""
import csv
import re
import unittest

import harness

WEIGHT = ("--type", "weight", "--bits", "3")


class TypesTest(harness.CliTest):
    def analyze(self, what, folder, *words):
        return self.run_json("analyze", what, "model.onnx", "--data", "images.npy", "-o", folder,
                             *words)

    def test_only_this_layer(self):
        """What sensitivity says of a layer is what a model with only that layer quantised has."""
        for words in (WEIGHT, ("--type", "dynamic")):
            result = self.analyze("sensitivity", "alone", *words)
            layers = {layer["layer"]: layer["metric"] for layer in result["layers"]}
            self.assertEqual(set(layers), {"gemm_node"} if "dynamic" in words
                             else {"conv_node", "gemm_node"})
            for layer, metric in layers.items():
                others = [word for other in layers if other != layer
                          for word in ("--skip-node", other)]
                self.run_quench("quantize", "model.onnx", "-o", "one.onnx", "--data", "images.npy",
                                *others, *words)
                found = self.run_json("eval", "one.onnx", "--reference", "model.onnx", "--data",
                                      "images.npy", "--metric", "sqnr")
                self.assertAlmostEqual(metric, found["sqnr"], 2, (layer, words))

    def test_ways_agree(self):
        exact = self.analyze("sensitivity", "exact", *WEIGHT)["layers"]
        whole = self.analyze("sensitivity", "whole", "--whole-runs", *WEIGHT)["layers"]
        for one, two in zip(exact, whole):
            self.assertEqual(one["layer"], two["layer"])
            self.assertAlmostEqual(one["metric"], two["metric"], 2)

    def test_types_mixed_in_one_model(self):
        result = self.analyze("sensitivity", "mixed", "--rule", "layer:gemm_node:type=weight",
                              "--rule", "layer:gemm_node:weight_bits=3")
        self.assertEqual({layer["layer"] for layer in result["layers"]}, {"conv_node", "gemm_node"})
        self.assertEqual(result["layers"][0]["layer"], "gemm_node")

    def test_target(self):
        """The worst layer stays in float, and the configuration makes the same model again."""
        worst = self.analyze("sensitivity", "first", *WEIGHT)["layers"][0]["layer"]
        plain = self.analyze("target", "low", "--at-least", "3", *WEIGHT)
        self.assertEqual(plain["in_float"], [])
        wanted = plain["quantized"] + 1
        found = self.analyze("target", "found", "--at-least", wanted, *WEIGHT)
        self.assertEqual(found["in_float"], [worst])
        self.assertGreaterEqual(found["value"], wanted)
        self.run_quench("quantize", "model.onnx", "-o", "again.onnx", "--config",
                        "found/target.cfg", "--data", "images.npy")
        self.assertEqual((self.dir / "again.onnx").read_bytes(),
                         (self.dir / "found/target_quant_model/model.onnx").read_bytes())

    def test_more_bits_before_float(self):
        plain = self.analyze("sensitivity", "plain", *WEIGHT)
        found = self.analyze("target", "bits", "--at-least", plain["quantized"] + 3, "--raise-bits",
                             "8", *WEIGHT)
        self.assertEqual(found["in_float"], [])
        self.assertEqual(set(found["weight_bits"].values()), {8})
        error = self.run_quench("analyze", "target", "model.onnx", "--data", "images.npy",
                                "--type", "dynamic", "--at-least", "1", "--raise-bits", "8",
                                expect=2).stderr
        self.assertIn("--raise-bits", error)

    def test_target_metric_of_quantize(self):
        self.run_quench("quantize", "model.onnx", "-o", "met.onnx", "--data", "images.npy",
                        *WEIGHT, "--target-metric", "sqnr", "--at-least", "20")
        found = self.run_json("compare", "model.onnx", "met.onnx", "--data", "images.npy")
        self.assertGreaterEqual(found["outputs"][0]["sqnr"], 20)

    def test_statistics(self):
        self.analyze("statistics", "stats", *WEIGHT, "--report", "stats.html")
        with open(self.dir / "stats/statistic.csv", newline="", encoding="utf-8") as file:
            rows = {row["Var Name"]: row for row in csv.DictReader(file)}
        _, seen = harness.read_npy(self.dir / "images.npy")
        self.assertAlmostEqual(float(rows["x"]["FP32 Max"]), max(seen), 3)
        self.assertEqual(rows["x"]["Integer Max"], "")
        for name in ("filters", "weights"):
            self.assertTrue(-4 <= float(rows[name]["Integer Min"]) <
                            float(rows[name]["Integer Max"]) <= 3, rows[name])
            self.assertGreater(float(rows[name]["Diff Std"]), 0)
        error = self.run_quench("analyze", "statistics", "model.onnx", "--data", "images.npy",
                                "--type", "dynamic", expect=2).stderr
        self.assertIn("analyze sensitivity", error)

    def test_report(self):
        self.analyze("sensitivity", "shown", *WEIGHT, "--report", "shown.html")
        page = (self.dir / "shown.html").read_text()
        self.assertRegex(page, r'"type"[^\]]*"weight"')
        self.assertTrue(re.search(r"gemm_node", page))


if __name__ == "__main__":
    unittest.main()
