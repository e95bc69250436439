# SPDX-License-Identifier: Apache-2.0
"""Settings: in the report and in the model, and run again from either."""
import json
import re
import unittest

import harness


class SettingsTest(harness.CliTest):
    def quantize(self, out, *words, **options):
        return self.run_quench("quantize", "model.onnx", "-o", out, *words, **options)

    def bytes_of(self, name):
        return (self.dir / name).read_bytes()

    def help_defaults(self, verb):
        """Flags and the defaults that their help shows."""
        text = self.run_quench(verb, "--help-all").stdout.replace("--shape NAME=DIMS", "")
        return dict(re.findall(r"^ +(--[a-z-]+) [A-Z]+(?::.*?)?=(\S+)", text, re.MULTILINE))

    def settings(self, *words):
        return self.run_json("quantize", "model.onnx", "-o", "s.onnx", "--data", "images.npy",
                             *words)["settings"]

    def check_rerun(self, *words):
        """The report, the printed object and the model itself each give the same bytes."""
        printed = self.quantize("first.onnx", "--json", "--report-json", "report.json",
                                *words).stdout
        (self.dir / "printed.json").write_text(printed, encoding="utf-8")
        for source in ("report.json", "printed.json", "first.onnx"):
            self.quantize("again.onnx", "--settings", source)
            self.assertEqual(self.bytes_of("again.onnx"), self.bytes_of("first.onnx"), source)

    def test_defaults_run_again(self):
        self.check_rerun("--data", "images.npy")

    def test_everything_runs_again(self):
        self.check_rerun(
            "--data", "images.npy", "--limit", "18", "--batch", "3", "--held-out", "2",
            "--target", "generic", "--activation-observer", "hist", "--weight-observer", "abs_max",
            "--hist-percent", "0.999", "--bins", "512", "--activation-bits", "7", "--per-layer",
            "--rule", "name:conv*:activation_observer=KL,weight_bits=4", "--rule",
            "type:Gemm:activation_observer=min_max", "--rule", "layer:gemm_node:bits=8",
            "--no-bias-correction", "--min-weight-size", "1")

    def test_statistics_run_again(self):
        self.run_quench("calibrate", "model.onnx", "-o", "a.stats", "--data", "images.npy")
        self.check_rerun("--stats", "a.stats", "--format", "qoperator")

    def test_config_file_runs_again(self):
        (self.dir / "c.cfg").write_text(
            "[common_quant_param]\nquant_type=FULL_QUANT\nskip_quant_node=conv_node\n"
            "[full_quant_param]\nactivation_quant_method=KL\nper_channel=false\n"
            "[data_preprocess_param]\ncalibrate_path=x:images.npy\ncalibrate_size=15\n",
            encoding="utf-8")
        self.check_rerun("--config", "c.cfg")

    def test_flags_reach_the_settings(self):
        config = self.settings("--rule", "layer:conv_node:activation_observer=KL,bits=6",
                               "--rule", "name:gemm*:skip", "--skip-tensor", "scores", "--op-types",
                               "Conv,Gemm", "--isa", "vnni")["config"]
        self.assertEqual(config["by_layer"]["conv_node"]["activation_observer"], "KL")
        self.assertEqual(config["by_layer"]["conv_node"]["weight_bits"], 6)
        self.assertEqual(config["by_name"][0][0], "gemm*")
        self.assertTrue(config["by_name"][0][1]["skip"])
        self.assertEqual(config["skip_tensor_list"], ["scores"])
        self.assertEqual(config["quantizable_op_type"], ["Conv", "Gemm"])
        self.assertEqual(config["isa"], "vnni")

    def test_flags_that_would_change_nothing_are_refused(self):
        weight = ["--type", "weight"]
        mixed = [*weight, "--bits", "0"]
        table = [
            (["--bits", "4"], "--type weight"), (["--group-size", "32"], "--type weight"),
            (["--type", "dynamic", "--gptq"], "--type weight"), (["--symmetric"], "--type weight"),
            (["--strategy", "ALWC"], "--type dynamic"),
            (["--target-size", "0.2"], "--type weight --bits 0"),
            (["--auto-tune"], "--type weight --bits 0"),
            (["--per-channel", "--target", "dsp"], "for targets that scale channels"),
            (["--correction-samples", "8", "--no-bias-correction"], "with bias correction"),
            ([*weight, "--activation-bits", "7"], "--type full"),
            ([*weight, "--format", "qdq"], "--type full"),
            ([*weight, "--equalize", "always"], "--type full"),
            ([*weight, "--auto-tune"], "--type weight --bits 0"),
            ([*mixed, "--target-cosine", "0.9"], "--auto-tune"),
            ([*mixed, "--target-size", "0.2", "--init-scale", "0.1"], "without --auto-tune"),
            (["--type", "dynamic", "--weight-bits", "4"], "--type full and --type weight"),
        ]
        for words, scope in table:
            with self.subTest(words):
                error = self.quantize("no.onnx", "--data", "images.npy", *words, expect=2).stderr
                self.assertIn("would change nothing", error)
                self.assertIn(scope, error)
        self.assertFalse((self.dir / "no.onnx").exists())
        # The kind of quantisation may come from a file.
        (self.dir / "w.cfg").write_text("[common_quant_param]\nquant_type=WEIGHT_QUANT\n"
                                        "min_quant_weight_channel=0\n", encoding="utf-8")
        self.quantize("four.onnx", "--config", "w.cfg", "--bits", "4")
        self.quantize("no.onnx", "--config", "w.cfg", "--equalize", "always", expect=2)

    def test_help_shows_the_defaults_that_hold(self):
        shown = self.help_defaults("quantize")
        made = self.settings()
        config, weight = made["config"], made["weight"]
        held = {"--batch": made["batch"], "--held-out": made["held_out"],
                "--correction-samples": made["correction_samples"], "--target": config["target"],
                "--hist-percent": config["hist_percent"], "--bins": config["bins"],
                "--reconstruct-steps": made["training"]["reconstruct_steps"],
                "--zoom": f'{made["training"]["zoom"]:g}',
                "--type": made["type"], "--bits": weight["bits"],
                "--init-scale": weight["init_scale"], "--target-cosine": weight["cosine_target"],
                "--strategy": made["dynamic"]["quant_strategy"],
                "--bias-correction": made["correction"], "--equalize": made["equalization"],
                "--format": "qoperator" if made["qoperator"] else "qdq",
                "--color": made["data"]["image"]["color"],
                "--resize-method": made["data"]["image"]["method"]}
        for flag, value in held.items():
            self.assertEqual(shown[flag], str(value), flag)
        unchecked = set(shown) - set(held) - {"--activation-bits", "--weight-bits"}
        self.assertEqual(unchecked, set(), "defaults that this test should compare")

    def test_guide_states_the_defaults_of_the_help(self):
        """Rows of the guide's tables that state a default: `N unless told otherwise` and the like."""
        shown = self.help_defaults("quantize")
        checked = 0
        for page in ("quantize", "weights"):
            text = (harness.SOURCE / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8")
            for cell, meaning in re.findall(r"^\| (`--[^|]*) \| (.*) \|$", text, re.MULTILINE):
                stated = re.findall(r"`?([\w.]+)`? unless told otherwise", meaning)
                flags = [flag for flag in re.findall(r"--[a-z-]+", cell) if flag in shown]
                for flag in flags if stated else []:
                    self.assertEqual(stated, [shown[flag]] * len(stated), f"{page}: {flag}")
                    checked += 1
        self.assertGreaterEqual(checked, 6)

    def test_flags_override_settings(self):
        self.quantize("kl.onnx", "--data", "images.npy", "--activation-observer", "KL")
        report = self.run_json("quantize", "model.onnx", "-o", "o.onnx", "--settings", "kl.onnx",
                               "--activation-observer", "min_max", "--limit", "10")
        config = report["settings"]["config"]
        self.assertEqual(config["global"]["activation_observer"], "min_max")
        self.assertEqual(report["calibration_samples"] + report["validation_samples"], 10)

    def test_metadata_can_be_left_out(self):
        self.quantize("bare.onnx", "--data", "images.npy", "--no-metadata")
        self.assertNotIn(b"quench.settings", self.bytes_of("bare.onnx"))
        self.quantize("noted.onnx", "--data", "images.npy")
        self.assertIn(b"quench.settings", self.bytes_of("noted.onnx"))

    def test_rules_change_what_they_name(self):
        def integers(*words):
            report = self.run_json("quantize", "model.onnx", "-o", "r.onnx", "--data",
                                   "images.npy", *words)
            return {layer["node"] for layer in report["float_layers"]}
        self.assertNotIn("Conv 'conv_node'", str(integers()))
        self.assertIn("conv_node", str(integers("--rule", "type:Conv:skip")))
        self.assertIn("conv_node", str(integers("--rule", "name:conv*:skip")))
        # The layer's own rule is more specific than the type's.
        self.assertNotIn("conv_node", str(integers("--rule", "type:Conv:skip", "--rule",
                                                   "layer:conv_node:activation_observer=KL")))

    def test_bad_rules(self):
        for rule, mention in (("conv_node", "no ':'"), ("nam:conv:skip", "did you mean 'name'?"),
                              ("name::skip", "names nothing"), ("name:c:", "sets nothing"),
                              ("name:c:bit=8", "did you mean 'bits'?"),
                              ("name:c:bits=1", "2 to 16"), ("name:c:per_channel=1", "true or"),
                              ("global:c:skip", "no name"), ("name:c:KL", "KEY=VALUE")):
            with self.subTest(rule):
                error = self.quantize("no.onnx", "--data", "images.npy", "--rule", rule, expect=2)
                self.assertIn(mention, error.stderr)
        error = self.quantize("no.onnx", "--data", "images.npy", "--rule", "layer:conv_nod:skip",
                              expect=3).stderr
        self.assertIn("did you mean 'conv_node'?", error)

    def test_bad_settings(self):
        good = self.settings()
        cases = [("no json", 3, "bad.json"), ("{", 3, "not JSON"), ("{}x", 3, "not JSON"),
                 ("[" * 100000, 3, "bad.json"), ("{\"a\":" * 100000, 3, "deep"),
                 (json.dumps({**good, "bach": 1}), 3, "did you mean 'batch'?"),
                 (json.dumps({**good, "batch": "8"}), 3, "batch takes a whole number"),
                 (json.dumps({**good, "batch": -1}), 3, "batch takes a whole number"),
                 (json.dumps({**good, "type": "ful"}), 3, "type takes one of"),
                 (json.dumps({**good, "config": []}), 3, "config takes an object"),
                 (json.dumps({**good, "statistics": [3]}), 3, "statistics takes a text")]
        for text, code, mention in cases:
            (self.dir / "bad.json").write_text(text, encoding="utf-8")
            with self.subTest(text[:40]):
                error = self.quantize("no.onnx", "--settings", "bad.json", expect=code).stderr
                self.assertIn(mention, error)
        self.assertIn("holds no settings", self.quantize("no.onnx", "--settings", "model.onnx",
                                                         expect=3).stderr)
        self.assertFalse((self.dir / "no.onnx").exists())


if __name__ == "__main__":
    unittest.main()
