# SPDX-License-Identifier: Apache-2.0
"""Every name that a report shows can be given to --skip-node and --skip-tensor, with effect."""
import csv
import re
import unittest

from harness import CliTest


class Names(CliTest):
    def skipped(self, model, flag, name, *words):
        """How many nodes stay in float with a name skipped, and why."""
        report = self.run_json("quantize", model, "-o", "skipped.onnx", "--data", "images.npy",
                               "--limit", "5", flag, name, *words)
        reasons = [each["reason"] for each in report["float_layers"]]
        return len(reasons), reasons

    def shown_names(self, model):
        """Names of layers, weights and values out of all that analysis and reports write."""
        ranked = self.run_json("analyze", "sensitivity", model, "-o", "an", "--data", "images.npy")
        text = (self.dir / "an" / "analysis.txt").read_text()
        names = set(re.findall(r"^quant layer name: (.*), eval metric: ", text, re.M))
        self.assertTrue(names)
        for layer in ranked["layers"]:
            names |= {layer["layer"], layer["weight"]}
        report = self.run_json("quantize", model, "-o", "q.onnx", "--data", "images.npy",
                               "--debug-info", "tables")
        for layer in report["layers"]:
            names |= {layer["node"], layer["value"]}
        for table in ("quant_param.csv", "round_0.csv"):
            with open(self.dir / "tables" / table, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    names |= {row["NodeName"], row["TensorName"]}
        self.run_quench("analyze", "statistics", model, "-o", "st", "--data", "images.npy")
        with open(self.dir / "st" / "statistic.csv", newline="", encoding="utf-8") as file:
            names |= {row["Var Name"] for row in csv.DictReader(file)}
        return len(report["float_layers"]), sorted(names)

    def test_names_are_taken_and_have_effect(self):
        for model in ("model.onnx", "residual.onnx"):
            before, names = self.shown_names(model)
            self.assertGreater(len(names), 6)
            for at, name in enumerate(names):
                flag = ("--skip-node", "--skip-tensor")[at % 2]  # in turn: a run takes its time
                in_float, reasons = self.skipped(model, flag, name, "--no-bias-correction")
                self.assertTrue(any("lists" in reason for reason in reasons),
                                (model, flag, name, reasons))
                self.assertGreater(in_float, before, (model, flag, name))
        for name in ("conv_node", "Conv node 'conv_node'", "filters", "relu", "x"):
            for flag in ("--skip-node", "--skip-tensor"):
                _, reasons = self.skipped("model.onnx", flag, name)
                self.assertTrue(any("lists" in reason for reason in reasons), (flag, name))

    def test_weights_keep_their_names_where_channels_are_equalised(self):
        for words in (("--equalize", "always"), ("--per-layer",)):
            for name in ("one_a_w", "one_b_w", "one_a", "stem_relu"):
                _, reasons = self.skipped("residual.onnx", "--skip-tensor", name, *words)
                self.assertIn(f"skip_tensor_list lists '{name}', which it reads or makes", reasons)

    def test_a_node_and_a_value_of_one_name(self):
        """Each flag means its own kind first: the unnamed node that makes 'pooled' goes by it."""
        node, _ = self.skipped("residual.onnx", "--skip-node", "pooled")
        value, _ = self.skipped("residual.onnx", "--skip-tensor", "pooled")
        self.assertLess(node, value)

    def test_unknown_names_are_refused(self):
        for flag in ("--skip-node", "--skip-tensor"):
            error = self.run_quench("quantize", "model.onnx", "-o", "no.onnx", "--data",
                                    "images.npy", flag, "filtres", expect=3).stderr
            self.assertIn("'filtres' matches nothing in the model; did you mean 'filters'?", error)


if __name__ == "__main__":
    unittest.main()
