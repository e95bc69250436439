# SPDX-License-Identifier: Apache-2.0
"""quench retarget: a quantised model for another runtime, without data."""
import unittest

import harness


class RetargetTest(harness.CliTest):
    def quantized(self, model, target, *flags):
        out = f"{target}_{model}"
        self.run_quench("quantize", model, "-o", out, "--target", target, "--data", "images.npy",
                        "--no-bias-correction", *flags)
        return out

    def integers(self, model, target):
        nodes = self.run_json("lint", model, "--target", target)["nodes"]
        return sum(node["integer"] for node in nodes), len(nodes)

    def test_counts_are_those_of_lint(self):
        made = self.quantized("residual.onnx", "openvino")
        report = self.run_json("retarget", made, "--target", "onnxruntime", "-o", "ort.onnx")
        for key, model in (("before", made), ("after", "ort.onnx")):
            found = report[key]["integer_nodes"], report[key]["nodes"]
            self.assertEqual(found, self.integers(model, "onnxruntime"))
        self.assertEqual(len(report["float_layers"]),
                         report["after"]["nodes"] - report["after"]["integer_nodes"])

    def test_quantize_points_here(self):
        made = self.quantized("residual.onnx", "onnxruntime")
        error = self.run_quench("quantize", made, "-o", "again.onnx", "--data", "images.npy",
                                expect=4).stderr
        self.assertIn("quench retarget", error)

    def test_what_has_no_integers_gains_them(self):
        """Layers for TensorRT have no scale behind them: in ONNX Runtime they would be float."""
        made = self.quantized("mobile.onnx", "openvino")
        report = self.run_json("retarget", made, "--target", "onnxruntime", "-o", "ort.onnx",
                               "--data", "images.npy")
        self.assertGreater(report["after"]["percent"], report["before"]["percent"])
        self.assertGreater(report["calibrated_scales"] + report["neighbour_scales"], 0)

    def test_another_runtime_and_back_keeps_the_numbers(self):
        """uint8 with a zero point is int8 with one 128 lower: nothing is rounded anew."""
        made = self.quantized("model.onnx", "onnxruntime")
        there = self.run_json("retarget", made, "--target", "tflite", "-o", "there.onnx")
        back = self.run_json("retarget", "there.onnx", "--target", "onnxruntime", "-o", "back.onnx")
        for report in (there, back):
            self.assertGreater(report["kept_scales"], 0)
            self.assertEqual(report["wider_scales"] + report["finer_scales"], 0)
            # LiteRT's weights end at -127: where one is -128, that element and no other changes.
            for loss in report["losses"]:
                self.assertEqual(loss["step"], 1)
                self.assertLess(loss["changed"], 0.05)
        self.assertEqual(back["changed_weights"], 0)
        scores = self.run_json("compare", "back.onnx", made, "--data", "images.npy")["outputs"]
        self.assertGreater(min(score["sqnr"] for score in scores), 30)

    def test_symmetric_scales_cost_a_bit_and_it_says_so(self):
        made = self.quantized("model.onnx", "onnxruntime")
        report = self.run_json("retarget", made, "--target", "tensorrt", "-o", "trt.onnx")
        self.assertGreater(report["wider_scales"], 0)
        losses = [loss for loss in report["losses"] if not loss["weight"]]
        self.assertEqual(len(losses), report["wider_scales"])
        self.assertLess(max(loss["step"] for loss in losses), 2.01)

    def test_an_activation_that_a_scale_stood_for_comes_back(self):
        made = self.quantized("model.onnx", "onnxruntime")
        for _ in range(2):  # what was taken out for ONNX Runtime stands again where it is needed
            self.run_quench("retarget", made, "--target", "onnxruntime", "-o", "ort.onnx")
            self.run_quench("retarget", "ort.onnx", "--target", "tensorrt", "-o", "trt.onnx")
        scores = self.run_json("compare", "trt.onnx", made, "--data", "images.npy")["outputs"]
        self.assertGreater(min(score["cosine"] for score in scores), 0.99)

    def test_integer_operators_are_taken_apart(self):
        plain = self.quantized("model.onnx", "onnxruntime")
        joined = "joined.onnx"
        self.run_quench("quantize", "model.onnx", "-o", joined, "--data", "images.npy",
                        "--no-bias-correction", "--format", "qoperator")
        report = self.run_json("retarget", joined, "--target", "onnxruntime", "-o", "ort.onnx")
        self.assertEqual(report["changed_weights"], 0)
        scores = self.run_json("compare", "ort.onnx", plain, "--data", "images.npy")["outputs"]
        self.assertGreater(min(score["sqnr"] for score in scores), 40)

    def test_layers_that_were_float_stay_float(self):
        made = self.quantized("model.onnx", "onnxruntime", "--skip-node", "gemm_node")
        report = self.run_json("retarget", made, "--target", "tensorrt", "-o", "trt.onnx")
        reasons = {layer["node"]: layer["reason"] for layer in report["float_layers"]}
        self.assertEqual(reasons["gemm_node"], "its weight was not quantised")

    def test_the_format_tells_the_target(self):
        made = self.quantized("model.onnx", "onnxruntime")
        self.assertEqual(self.run_json("retarget", made, "-o", "x.tflite")["target"], "tflite")
        self.assertEqual(self.run_json("retarget", made, "-o", "x.onnx")["target"], "onnxruntime")

    def test_what_is_quantised_while_it_runs_gets_scales_from_data(self):
        self.run_quench("quantize", "model.onnx", "-o", "dynamic.onnx", "--type", "dynamic")
        self.run_quench("quantize", "model.onnx", "-o", "weights.onnx", "--type", "weight",
                        "--bits", "8", "--min-weight-channel", "0")
        for made in ("dynamic.onnx", "weights.onnx"):
            report = self.run_json("retarget", made, "--target", "onnxruntime", "-o", "ort.onnx",
                                   "--data", "images.npy")
            self.assertGreater(report["calibrated_scales"], 0)
            self.assertEqual(report["changed_weights"], 0)
            self.assertGreater(report["after"]["integer_nodes"], 0)
            nodes = self.run_json("inspect", "ort.onnx")["operators"]
            self.assertNotIn("DynamicQuantizeLinear", str(nodes))
            scores = self.run_json("compare", "ort.onnx", made, "--data", "images.npy")["outputs"]
            self.assertGreater(min(score["cosine"] for score in scores), 0.99)

    def test_text(self):
        made = self.quantized("model.onnx", "onnxruntime")
        text = self.run_quench("retarget", made, "--target", "tensorrt", "-o", "trt.onnx").stdout
        self.assertRegex(text, r"nodes on integers in tensorrt, before +\d+ of \d+")
        self.assertRegex(text, r"nodes on integers in tensorrt, after +\d+ of \d+")
        self.assertIn("against the model that was read, on 8 generated samples", text)

    def refused(self, code, sentence, *words):
        result = self.run_quench("retarget", *words, expect=code)
        self.assertRegex(result.stderr, sentence)
        self.assertFalse((self.dir / "bad.onnx").exists())

    def test_bad_input(self):
        self.refused(4, "model.onnx: no activation of it has a scale.*quench quantize", "model.onnx",
                     "--target", "tensorrt", "-o", "bad.onnx")
        self.run_quench("quantize", "model.onnx", "-o", "dynamic.onnx", "--type", "dynamic")
        self.refused(4, "quantised while it runs.*--data.*quench quantize", "dynamic.onnx", "-o",
                     "bad.onnx")
        self.run_quench("quantize", "model.onnx", "-o", "weights.onnx", "--type", "weight",
                        "--min-weight-channel", "0")
        self.refused(4, "weights alone are quantised.*--data", "weights.onnx", "-o", "bad.onnx")
        self.run_quench("quantize", "model.onnx", "-o", "wide.onnx", "--data", "images.npy",
                        "--activation-bits", "16")
        self.refused(4, "quantised to 16 bits, and target 'tensorrt' computes with 8", "wide.onnx",
                     "--target", "tensorrt", "-o", "bad.onnx")
        made = self.quantized("model.onnx", "onnxruntime")
        self.refused(2, "there is no target 'tensort'; did you mean 'tensorrt'", made, "--target",
                     "tensort", "-o", "bad.onnx")
        self.refused(2, "leave out --labels", made, "--target", "openvino", "-o", "bad.onnx",
                     "--data", "images.npy", "--labels", "labels.npy")
        self.refused(2, "--batch requires --data", made, "-o", "bad.onnx", "--batch", "2")
        self.refused(2, "symmetric", made, "--target", "onnxruntime", "-o", "bad.pdmodel")


if __name__ == "__main__":
    unittest.main()
