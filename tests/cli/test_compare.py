# SPDX-License-Identifier: Apache-2.0
"""quench compare."""
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
