# SPDX-License-Identifier: Apache-2.0
"""quench analyze sensitivity QUANTISED --float MODEL: which layer of a quantised model costs most."""
import json
import os
import re
import unittest

import harness


class AnalyzeQuantizedTest(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.run_quench(cls(), "quantize", "model.onnx", "-o", "int8.onnx", "--data", "images.npy")
        # The convolution is much worse than the rest.
        cls.run_quench(cls(), "quantize", "model.onnx", "-o", "uneven.onnx", "--data", "images.npy",
                       "--rule", "layer:conv_node:weight_bits=2", "--no-bias-correction")

    def analyze(self, model, folder, *words, plain="model.onnx", **options):
        return self.run_quench("analyze", "sensitivity", model, "--float", plain, "--data",
                               "images.npy", "-o", folder, *words, **options)

    def analyze_json(self, model, folder, *words):
        return json.loads(self.analyze(model, folder, "--json", *words).stdout)

    def test_most_harmful_first(self):
        result = self.analyze_json("uneven.onnx", "uneven")
        self.assertEqual([layer["layer"] for layer in result["layers"]], ["conv_node", "gemm_node"])
        values = [layer["metric"] for layer in result["layers"]]
        self.assertEqual(values, sorted(values, reverse=True))
        # Without the bad layer the model is much better, without the other one it is not.
        self.assertGreater(values[0], result["quantized"] + 5)
        self.assertLess(values[1], result["quantized"] + 5)
        lines = (self.dir / "uneven" / "analysis.txt").read_text().splitlines()
        match = re.fullmatch(r"without layer name: (\S+), eval metric: (\S+)", lines[0])
        self.assertEqual(match[1], "conv_node")
        self.assertAlmostEqual(float(match[2]), values[0])

    def test_what_is_left_is_float(self):
        # All quantisation of a model with one layer goes: the float model is left.
        self.run_quench("quantize", "model.onnx", "-o", "one.onnx", "--data", "images.npy",
                        "--skip-node", "gemm_node")
        result = self.analyze_json("one.onnx", "one")
        self.assertEqual([layer["layer"] for layer in result["layers"]], ["conv_node"])
        self.assertGreater(result["layers"][0]["metric"], result["quantized"] + 3)

    def test_labels_and_text(self):
        text = self.analyze("int8.onnx", "labels", "--labels", "labels.npy").stdout
        self.assertRegex(text, r"all quantised but +operator +top1")

    def test_other_names(self):
        # As a file of another tool: nothing is called what it is called in the float model.
        self.run_quench("pack", "uneven.onnx", "-o", "other.qnch")
        self.run_quench("unpack", "other.qnch", "-o", "other.onnx")
        data = (self.dir / "other.onnx").read_bytes()
        for old, new in ((b"conv_node", b"node_0001"[:9]), (b"gemm_node", b"node_0002")):
            data = data.replace(old, new)
        (self.dir / "other.onnx").write_bytes(data)
        result = self.analyze_json("other.onnx", "other")
        self.assertEqual([layer["layer"] for layer in result["layers"]], ["node_0001", "node_0002"])

    def test_report(self):
        self.analyze("uneven.onnx", "page", "--report", "page.html")
        page = (self.dir / "page.html").read_text()
        data = json.loads(re.search(r'<script id="quench-data"[^>]*>(.*?)</script>', page)[1])
        self.assertEqual([row["layer"] for row in data["sensitivity"]["layers"]],
                         ["conv_node", "gemm_node"])
        self.assertEqual(len(data["layers"]), 2)

    def test_resume(self):
        command = "test -e {model}.seen && exit 1; touch {model}.seen; echo 1"
        self.analyze("int8.onnx", "resume", "--metric-command", command, expect=3)
        (self.dir / "resume" / "metric_model.onnx.seen").unlink()
        self.analyze("int8.onnx", "resume", "--metric-command", command, "--resume", expect=3)
        saved = json.loads((self.dir / "resume" / "analysis_checkpoint.json").read_text())
        self.assertEqual(len(saved["layers"]), 2)
        error = self.analyze("uneven.onnx", "resume", "--metric-command", command, "--resume",
                             expect=3).stderr
        self.assertIn("model", error)

    # Models that do not fit.

    def test_not_quantised(self):
        error = self.analyze("model.onnx", "bad", expect=3).stderr
        self.assertIn("no layer whose weights a DequantizeLinear makes", error)

    def test_another_network(self):
        error = self.analyze("int8.onnx", "bad", plain="mobile.onnx", expect=3).stderr
        self.assertIn("none of its 2 layers", error)

    def test_options_that_quantise(self):
        error = self.analyze("int8.onnx", "bad", "--weight-bits", "4", expect=2).stderr
        self.assertIn("--weight-bits says how to quantise", error)
        for flag in ("--quick", "--reverse", "--whole-runs"):
            self.analyze("int8.onnx", "bad", flag, expect=2)

    def test_the_float_model_is_not_overwritten(self):
        before = (self.dir / "model.onnx").read_bytes()
        self.analyze("int8.onnx", "bad", "--report", "model.onnx", expect=2)
        self.assertEqual(before, (self.dir / "model.onnx").read_bytes())


if __name__ == "__main__":
    unittest.main()
