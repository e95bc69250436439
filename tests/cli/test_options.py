# SPDX-License-Identifier: Apache-2.0
"""The table of options as a user meets it: help, lists, completion, names and what is refused."""
import re
import shutil
import subprocess
import unittest

from harness import PROGRAM, SOURCE, CliTest

# What a command does with the model, not how it is quantised.
OF_QUANTIZE = {"--integer-io", "--output", "--report-json", "--target-metric", "--at-least", "--debug-info",
               "--debug-samples", "--tensor-parallel"}


class Options(CliTest):
    def flags(self, *command):
        text = self.run_quench(*command, "--help-all").stdout
        return set(re.findall(r"^\s+(?:-\w,)?(--[a-z][\w-]*)", text, re.M))

    def complete(self, *words):
        """What bash would offer for the last word."""
        script = self.dir / "quench.bash"
        script.write_text(self.run_quench("completion", "bash").stdout)
        line = " ".join(f"'{word}'" for word in words)
        command = (f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _quench; "
                   'echo "${COMPREPLY[@]}"')
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True,
                              check=True).stdout.split()

    def test_analyze_takes_every_option_of_quantize(self):
        wanted = self.flags("quantize") - OF_QUANTIZE
        self.assertIn("--skip-tensor", wanted)
        for kind in ("sensitivity", "target", "statistics"):
            self.assertEqual(wanted - self.flags("analyze", kind), set(), kind)

    def test_every_option_is_listed(self):
        listed = self.run_json("list", "options")["options"]
        for command in ("quantize", "train"):
            names = {"--" + option["name"] for option in listed
                     if command in option["commands"].split(", ")}
            self.assertLessEqual(names, self.flags(command))
        self.assertLessEqual({"--rule", "--skip-node", "--resize"}, names)
        bits = next(option for option in listed if option["name"] == "bits")
        self.assertEqual((bits["default"], bits["ini"], bits["setting"]),
                         ("8", "common_quant_param.bit_num", "weight.bits"))
        self.assertIn("--type weight", bits["for"])
        self.assertIn("| `--bits N` | `8` |", self.run_quench("list", "options",
                                                              "--markdown").stdout)
        self.assertIn("--of", self.run_quench("list", "metrics", "--of", "paddleslim",
                                              expect=2).stderr)

    def test_guide_names_flags_that_there_are(self):
        known = set()
        for command in ("quantize", "train", "calibrate", "eval", "compare", "bench", "run", "demo", "lint",
                        "inspect", "pack", "unpack", "list", "convert", "report"):
            known |= self.flags(command)
        for kind in ("sensitivity", "target", "statistics"):
            known |= self.flags("analyze", kind)
        for page in ("quantize", "weights", "analyze", "data", "from-onnxruntime"):
            text = (SOURCE / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8")
            for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text):
                self.assertIn(flag, known, page)

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash_completes_commands_flags_and_values(self):
        self.assertEqual(self.complete("quench", "quan"), ["quantize"])
        self.assertEqual(self.complete("quench", "analyze", "target", "--skip-"),
                         ["--skip-node", "--skip-tensor"])
        self.assertEqual(self.complete("quench", "quantize", "m.onnx", "--type", "w"), ["weight"])
        self.assertIn("tensorrt", self.complete("quench", "quantize", "--target", ""))
        self.assertEqual(self.complete("quench", "list", "obs"), ["observers"])
        self.assertEqual(self.complete("quench", "quantize", "--data", ""), [])  # names of files

    def test_other_shells_read_their_scripts(self):
        for shell in ("zsh", "fish"):
            text = self.run_quench("completion", shell).stdout
            self.assertIn("skip-tensor", text)
            if shutil.which(shell) is None:
                continue
            (self.dir / shell).write_text(text)
            subprocess.run([shell, "-n", self.dir / shell], check=True)

    def test_a_name_with_a_comma(self):
        words = ["quantize", "model.onnx", "-o", "no.onnx", "--type", "weight", "--skip-node"]
        self.assertIn("skip_quant_node 'a,b' matches nothing",
                      self.run_quench(*words, r"a\,b", expect=3).stderr)
        self.assertIn("skip_quant_node 'a' matches", self.run_quench(*words, "a,b",
                                                                     expect=3).stderr)
        name = 'a,"b"/</script><script>alert(1)</script>\u00e9'
        report = self.run_json("quantize", "names.onnx", "-o", "named.onnx", "--data", "images.npy",
                               "--skip-node", name.replace(",", "\\,"))
        self.assertEqual([name in layer["node"] for layer in report["float_layers"]], [True])

    def test_a_type_that_is_folded_away(self):
        error = self.run_quench("quantize", "norm.onnx", "-o", "no.onnx", "--data", "images.npy",
                                "--rule", "type:BatchNormalization:skip", expect=3).stderr
        self.assertIn("BatchNormalization, Identity and constants are folded", error)

    def test_analyze_minds_its_options(self):
        words = ["analyze", "statistics", "model.onnx", "-o", "an", "--data", "images.npy"]
        self.run_quench(*words, "--skip-tensor", "filters")
        self.assertNotIn("conv_node", (self.dir / "an" / "statistic.csv").read_text())
        self.assertIn("--type weight", self.run_quench(*words, "--bits", "4", expect=2).stderr)
        self.run_quench(*words, "--type", "weight", "--bits", "4")
        self.assertIn("--type full", self.run_quench(*words, "--type", "weight", "--equalize", "never",
                                                     expect=2).stderr)
        (self.dir / "c.cfg").write_text("[common_quant_param]\nworkspace=here\n")
        self.assertIn("c.cfg:2: workspace has no effect",
                      self.run_quench(*words, "--config", "c.cfg").stderr)

    def test_an_unknown_shell(self):
        result = subprocess.run([PROGRAM, "completion", "tcsh"], capture_output=True, text=True,
                                check=False)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main()
