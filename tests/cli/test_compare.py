# SPDX-License-Identifier: Apache-2.0
"""quench compare."""
import json
import unittest

import harness


class CompareTest(harness.CliTest):
    def test_layers_and_outputs(self):
        result = self.run_json("compare", "model.onnx", "reference.onnx", "--data", "images.npy")
        self.assertEqual(result["samples"], 20)
        self.assertEqual([row["name"] for row in result["outputs"]], ["scores"])
        self.assertEqual([row["name"] for row in result["layers"]],
                         ["conv", "relu", "pooled", "features"])
        for row in result["layers"] + result["outputs"]:
            self.assertLess(row["cosine"], 1)
            self.assertGreater(row["cosine"], 0.9)
            self.assertGreater(row["max_abs"], 0)

    def test_equal_models(self):
        result = self.run_json("compare", "model.onnx", "model.onnx")
        self.assertEqual(result["samples"], 16)
        for row in result["layers"] + result["outputs"]:
            self.assertEqual((row["max_abs"], row["sqnr"]), (0, 1e308))

    def test_batches_do_not_change_the_result(self):
        whole = self.run_json("compare", "model.onnx", "reference.onnx", "--data", "images.npy",
                              "--batch", "20")
        parts = self.run_json("compare", "model.onnx", "reference.onnx", "--data", "images.npy",
                              "--batch", "3")
        for one, other in zip(whole["layers"], parts["layers"]):
            self.assertAlmostEqual(one["sqnr"], other["sqnr"], places=2)

    def test_sort_puts_the_worst_first(self):
        for metric, sign in (("cosine", 1), ("sqnr", 1), ("max_abs", -1)):
            result = self.run_json("compare", "model.onnx", "reference.onnx", "--sort", metric)
            values = [sign * row[metric] for row in result["layers"]]
            self.assertEqual(values, sorted(values))

    def test_random_inputs_depend_on_the_seed_only(self):
        words = ["compare", "model.onnx", "reference.onnx", "--samples", "5"]
        first = self.run_json(*words, "--seed", "1")
        self.assertEqual(first, self.run_json(*words, "--seed", "1"))
        self.assertNotEqual(first, self.run_json(*words, "--seed", "2"))
        self.assertEqual(first["samples"], 5)

    def quantized(self, *flags):
        """The report of quantising a network whose channels are equalised."""
        words = ["--data", "images.npy", "--equalize", "always", "--held-out", "4"]
        report = self.run_json("quantize", "mobile.onnx", "-o", "mobile_int8.onnx", *words, *flags)
        self.assertGreater(report["equalized_groups"], 0)
        return report

    def compared(self):
        result = self.run_quench("compare", "mobile_int8.onnx", "mobile.onnx", "--data",
                                 "images.npy", "--json")
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def test_padded_and_equalised_values_are_compared_as_in_the_float_model(self):
        # So fine that whatever a layer is off is a mistake of the comparison.
        self.quantized("--activation-bits", "16", "--weight-bits", "16")
        result = self.compared()
        self.assertEqual([row["name"] for row in result["layers"]], ["a", "swish", "d", "r"])
        self.assertEqual((result["padded"], result["equalized"]), (4, 4))
        for row in result["layers"] + result["outputs"]:
            self.assertGreater(row["sqnr"], 55, row)

    def test_no_layer_looks_worse_than_quantize_says(self):
        report = self.quantized()
        self.assertEqual(report["padded_layers"], 2)
        least = min([layer["accumulated_sqnr"] - 1 for layer in report["layers"]]
                    + [output["sqnr"] for output in report["outputs"]])
        for row in self.compared()["layers"]:
            self.assertGreater(row["sqnr"], least, row)
        text = self.run_quench("compare", "mobile_int8.onnx", "mobile.onnx").stdout
        self.assertIn("4 values were padded, 4 equalised: compared as in the float model", text)

    def test_channels_are_padded_unless_told_otherwise(self):
        padded = self.quantized()
        plain = self.quantized("--no-pad-channels")
        self.assertEqual((plain["padded_layers"], plain["padded_bytes"]), (0, 0))
        self.assertEqual(self.compared()["padded"], 0)
        self.assertGreater(padded["bytes_after"] - plain["bytes_after"], padded["padded_bytes"] / 2)
        (self.dir / "plain.cfg").write_text("[common_quant_param]\nquant_type=FULL_QUANT\n"
                                            "[quench_param]\npad_channels=false\n")
        told = self.run_json("quantize", "mobile.onnx", "-o", "told.onnx", "--data", "images.npy",
                             "--config", "plain.cfg")
        self.assertEqual(told["padded_layers"], 0)
        table = self.run_quench("quantize", "mobile.onnx", "-o", "told.onnx", "--data",
                                "images.npy").stdout
        self.assertRegex(table, r"padded channels +2 convolutions, \+\d+\.\d % size")

    def test_values_without_notes_are_left_out_with_one_warning(self):
        self.quantized("--no-metadata")
        result = self.run_quench("compare", "mobile_int8.onnx", "mobile.onnx", "--json")
        self.assertEqual(json.loads(result.stdout)["layers"], [])
        self.assertRegex(result.stderr, r"\Awarning compare: layers left out, their shapes differ "
                                        r"count=4 first name=a \S+ \S+\n\Z")

    def test_bars(self):
        words = ["compare", "model.onnx", "reference.onnx", "--data", "images.npy"]
        self.run_quench(*words, "--min-cosine", "0.9", "--min-sqnr", "5")
        missed = self.run_quench(*words, "--min-cosine", "0.9999999", expect=1)
        self.assertIn("cosine of 'scores'", missed.stderr)
        self.run_quench(*words, "--min-sqnr", "200", expect=1)

    def test_models_without_common_outputs(self):
        error = self.run_quench("compare", "model.onnx", "odd.onnx", expect=3)
        self.assertIn("no output in common", error.stderr)


if __name__ == "__main__":
    unittest.main()
