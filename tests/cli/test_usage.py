# SPDX-License-Identifier: Apache-2.0
"""Help, version, wrong commands and wrong flags."""
import os
import subprocess
import unittest

import harness

VERBS = ["inspect", "run", "eval", "bench", "compare", "convert", "list", "demo", "quantize",
         "calibrate", "lint", "pack", "unpack", "analyze", "report",
         "completion"]


class UsageTest(harness.CliTest):
    def test_help_names_every_command(self):
        text = self.run_quench("--help").stdout
        for verb in VERBS:
            self.assertIn(f"\n  {verb} ", text)

    def test_each_help_ends_with_an_example(self):
        for verb in VERBS:
            text = self.run_quench(verb, "--help").stdout
            example = text.split("Example:\n")[-1].strip()
            self.assertTrue(example.startswith(f"quench {verb} "), text)
            self.assertEqual(len(example.splitlines()), 1, text)

    def test_no_arguments_show_help_and_fail(self):
        result = self.run_quench(expect=2)
        self.assertIn("compare", result.stderr)

    def test_version(self):
        self.assertRegex(self.run_quench("--version").stdout, r"^quench \d+\.\d+\.\d+\n$")

    def test_wrong_command_suggests_the_nearest(self):
        self.assertIn("did you mean 'inspect'?", self.run_quench("inspct", expect=2).stderr)

    def test_wrong_flag_suggests_the_nearest(self):
        for words in (["bench", "model.onnx", "--bacth", "4"], ["bench", "--bacth", "4", "m.onnx"],
                      ["bench", "--bacth=4", "model.onnx"], ["bench", "--bacth", "4"]):
            self.assertIn("did you mean '--batch'?", self.run_quench(*words, expect=2).stderr)

    def test_wrong_usage_table(self):
        table = [
            (["inspect"], "model"),
            (["analyze"], "one of sensitivity, target, statistics"),
            (["analyze", "sensitvity"], "did you mean 'sensitivity'?"),
            (["analyze", "target", "m.onnx", "--at-lest", "3"], "did you mean '--at-least'?"),
            (["report"], "one of diff"),
            (["list", "cats"], "operators"),
            (["bench", "model.onnx", "--batch", "0"], "--batch"),
            (["bench", "model.onnx", "--batch", "many"], "--batch"),
            (["bench", "model.onnx", "--threads", "-1"], "--threads"),
            (["bench", "model.onnx", "--max-isa", "sse9"], "--max-isa"),
            (["bench", "model.onnx", "--shape", "x"], "NAME=VALUE"),
            (["bench", "model.onnx", "--shape", "x=1,a"], "1,3,224,224"),
            (["eval", "model.onnx", "--data", "images.npy", "--mean", "1,b"], "--mean"),
            (["eval", "model.onnx", "--data", "images.npy", "--resize", "8"], "--resize"),
            (["eval", "model.onnx", "--data", "d", "--color", "PINK"], "--color"),
            (["eval", "model.onnx", "--data", "d", "--resize", "8,8", "--resize-shorter", "8"],
             "--resize"),
            (["eval", "model.onnx", "--data", "d", "--at-least", "top1"], "--at-least"),
            (["eval", "model.onnx"], "--data"),
            (["eval", "model.onnx", "--data", "images.npy", "--metric", "top2"],
             "did you mean 'top1'?"),
            (["eval", "model.onnx", "--data", "images.npy", "--metric", "cosine"], "--reference"),
            (["compare", "model.onnx", "reference.onnx", "--metric", "top1"], "labels"),
            (["run", "model.onnx", "--input", "x=random:a"], "random:7"),
            (["run", "model.onnx", "--input", "x=zeros", "--input", "x=ones"], "twice"),
        ]
        for words, mention in table:
            with self.subTest(words=words):
                self.assertIn(mention, self.run_quench(*words, expect=2).stderr)

    def test_full_disk_is_reported(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([harness.PROGRAM, "list", "operators"], stdout=full,
                                    stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 3)
        self.assertIn("stdout", result.stderr)

    def test_plain_commands_load_no_engine(self):
        # Loading libtorch takes most of a second; bench/load.py times these commands.
        for words in (["--help"], ["list", "operators"], ["inspect", "model.onnx"]):
            self.assertNotIn("libtorch", self.libraries_of(*words), words)
        self.assertIn("libtorch", self.libraries_of("run", "model.onnx", "--input", "x=zeros",
                                                    "-o", "engine"))

    def libraries_of(self, *words):
        """What the dynamic loader said while the command ran."""
        result = subprocess.run([harness.PROGRAM, *words], cwd=self.dir, text=True, check=True,
                                capture_output=True, env={**os.environ, "LD_DEBUG": "files"})
        return result.stderr


if __name__ == "__main__":
    unittest.main()
