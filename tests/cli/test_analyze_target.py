# SPDX-License-Identifier: Apache-2.0
"""quench analyze target: what it writes, and what it does about bad input."""
import unittest

import harness


class TargetTest(harness.CliTest):
    def target(self, *words, **options):
        return self.run_quench("analyze", "target", "model.onnx", "--data", "images.npy", *words,
                               **options)

    def target_json(self, *words):
        return self.run_json("analyze", "target", "model.onnx", "--data", "images.npy", *words)

    def test_everything_quantised_is_enough(self):
        result = self.target_json("--metric", "sqnr", "--at-least", "5", "-o", "easy")
        self.assertTrue(result["met"])
        self.assertEqual(result["in_float"], [])
        self.assertTrue((self.dir / "easy/target_quant_model/model.onnx").exists())

    def test_layers_are_left_in_float(self):
        words = ["--weight-bits", "2", "--metric", "sqnr", "-o", "few"]
        poor = self.target_json(*words, "--at-least", "-50")["quantized"]
        result = self.target_json(*words, "--at-least", str(poor + 1))
        self.assertTrue(result["met"])
        self.assertEqual(len(result["in_float"]), 1)
        self.assertGreaterEqual(result["value"], poor + 1)
        own = self.run_json("eval", "few/target_quant_model/model.onnx", "--data", "images.npy",
                            "--reference", "model.onnx", "--metric", "sqnr")
        self.assertAlmostEqual(own["sqnr"], result["value"], 3)

    def test_config_is_taken_by_quantize(self):
        words = ["--weight-observer", "abs_max", "--metric", "sqnr", "-o", "config"]
        full = self.target_json(*words, "--at-least", "-50")["quantized"]
        result = self.target_json(*words, "--at-least", str(full + 0.5))
        self.assertEqual(len(result["in_float"]), 1)
        text = (self.dir / "config/target.cfg").read_text()
        self.assertIn(f"skip_quant_node={result['in_float'][0]}", text)
        again = self.run_json("quantize", "model.onnx", "-o", "again.onnx", "--config",
                              "config/target.cfg", "--data", "images.npy")
        self.assertIn(result["in_float"][0], str(again["float_layers"]))

    def check_same_model(self, folder, model):
        """The configuration alone gives the bytes of the model that was found and judged."""
        self.run_quench("quantize", model, "-o", "same.onnx", "--config", f"{folder}/target.cfg")
        self.assertEqual((self.dir / "same.onnx").read_bytes(),
                         (self.dir / folder / "target_quant_model/model.onnx").read_bytes())

    def test_config_gives_the_same_model(self):
        cases = {"few_bits": ["--weight-bits", "4"],
                 "named": ["--weight-observer", "abs_max", "--activation-observer", "KL"],
                 "raised": ["--weight-bits", "2", "--raise-bits", "8"]}
        for folder, words in cases.items():
            with self.subTest(case=folder):
                words = [*words, "--metric", "sqnr", "-o", folder]
                full = self.target_json(*words, "--at-least", "-50")["quantized"]
                self.check_same_model(folder, "model.onnx")
                result = self.target_json(*words, "--at-least", str(full + 0.5))
                self.assertEqual(len(result["in_float"]) + len(result["weight_bits"]), 1)
                self.check_same_model(folder, "model.onnx")
                own = self.run_json("eval", "same.onnx", "--data", "images.npy", "--reference",
                                    "model.onnx", "--metric", "sqnr")
                self.assertAlmostEqual(own["sqnr"], result["value"], 3)

    def test_config_of_odd_names(self):
        words = ["analyze", "target", "names.onnx", "--data", "images.npy", "--weight-bits", "2",
                 "--metric", "sqnr", "-o", "odd"]
        poor = self.run_json(*words, "--at-least", "-50")["quantized"]
        result = self.run_json(*words, "--at-least", str(poor + 1))
        self.assertTrue(result["in_float"][0].startswith('a,"b"/'))
        self.check_same_model("odd", "names.onnx")

    def test_more_bits_instead(self):
        words = ["--weight-bits", "2", "--metric", "sqnr", "-o", "bits", "--raise-bits", "8"]
        poor = self.target_json(*words, "--at-least", "-50")["quantized"]
        result = self.target_json(*words, "--at-least", str(poor + 1))
        self.assertTrue(result["met"])
        self.assertEqual(result["in_float"], [])
        self.assertEqual(list(result["weight_bits"].values()), [8])

    def test_confidence(self):
        result = self.target_json("--labels", "labels.npy", "--metric", "top1", "--at-least", "0",
                                  "-o", "sure")
        self.assertLess(result["low"], result["value"] + 1e-9)
        self.assertGreater(result["high"], result["value"])

    def test_no_evaluation_data(self):
        self.run_quench("calibrate", "model.onnx", "-o", "kept.stats", "--data", "images.npy")
        error = self.run_quench("analyze", "target", "model.onnx", "--stats", "kept.stats",
                                "--metric", "top1", "--at-least", "50", "-o", "none",
                                expect=2).stderr
        self.assertIn("the metric 'top1' needs evaluation data", error)

    def test_what_no_metric_can_reach(self):
        error = self.target("--metric", "sqnr", "--at-least", "nan", "-o", "none", expect=2).stderr
        self.assertIn("--at-least is NaN", error)

    def test_no_labels(self):
        error = self.target("--metric", "top1", "--at-least", "50", "-o", "none", expect=3).stderr
        self.assertIn("needs labels", error)

    def test_metric_command_that_fails(self):
        words = ["--at-least", "1", "-o", "none", "--metric-command"]
        self.assertIn("exit status 7",
                      self.target(*words, "cat {model} >/dev/null; exit 7", expect=3).stderr)
        self.assertIn("printed no number", self.target(*words, "echo {model}", expect=3).stderr)

    def test_folder_that_cannot_be_made(self):
        error = self.target("--metric", "sqnr", "--at-least", "1", "-o", "model.onnx/deep",
                            expect=3).stderr
        self.assertIn("model.onnx/deep", error)

    def test_what_cannot_be_met(self):
        outcome = self.run_quench("analyze", "target", "model.onnx", "--data", "images.npy",
                                  "--labels", "labels.npy", "--metric", "top1", "--at-least",
                                  "101", "-o", "never", expect=1)
        self.assertIn("cannot be met", outcome.stderr)
        self.assertIn("the float model has", outcome.stderr)
        self.assertFalse((self.dir / "never/target_quant_model/model.onnx").exists())

if __name__ == "__main__":
    unittest.main()
