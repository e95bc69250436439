# SPDX-License-Identifier: Apache-2.0
"""--tensor-parallel: parts of a model, quantised together, are the parts of the quantised model."""
import json
import os
import random
import re
import socket
import subprocess
import unittest

import harness

SAMPLES = 12
PLAIN = ("--no-bias-correction", "--equalize", "never")


class TensorParallelTest(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        source = random.Random(5)
        harness.write_npy(cls.dir / "tokens.npy", "<f4", (SAMPLES, 8, 16),
                          [source.gauss(0, 1) for _ in range(SAMPLES * 8 * 16)])
        for ranks in (2, 4):
            (cls.dir / str(ranks)).mkdir()
            cls.sharded("make", cls.dir / str(ranks), ranks)
        probe = subprocess.run([harness.PROGRAM, "launch", "-n", "1", "calibrate", "model.onnx",
                                "-o", "probe.stats", "--data", "images.npy"], cwd=cls.dir,
                               check=False, capture_output=True, text=True)
        if "libgloo-dev" in probe.stderr:
            raise unittest.SkipTest(probe.stderr)

    @classmethod
    def sharded(cls, *words):
        return subprocess.run([str(harness.BINARY / "tests" / "sharded_models"), *map(str, words)],
                              cwd=cls.dir, check=True, capture_output=True, text=True).stdout

    def launch(self, ranks, verb, *words, **options):
        return self.run_quench("launch", "-n", ranks, verb, *words, "--tensor-parallel", **options)

    def quantize_both(self, ranks, *words):
        """The whole model and its parts by the same settings; what comparing them says."""
        self.run_quench("quantize", f"{ranks}/whole.onnx", "-o", "whole8.onnx", "--data",
                        "tokens.npy", *PLAIN, *words)
        self.launch(ranks, "quantize", f"{ranks}/part{{rank}}.onnx", "-o", "part8_{rank}.onnx",
                    "--data", "tokens.npy", *words)
        parts = [f"part8_{rank}.onnx" for rank in range(ranks)]
        return json.loads(self.sharded("compare", "whole8.onnx", *parts))

    def test_parts_are_those_of_the_quantised_whole(self):
        for ranks, observer in ((2, "mse"), (2, "KL"), (2, "avg"), (4, "mse"),
                                (4, "moving_average_abs_max")):
            found = self.quantize_both(ranks, "--activation-observer", observer)
            self.assertEqual((found["weights"], found["values"]), (7, 11))
            self.assertLess(found["worst"], 1e-5, (ranks, observer))

    def test_other_scales_of_weights(self):
        for words in (["--per-layer"], ["--weight-observer", "channel_wise_abs_max", "--isa", "avx2"]):
            found = self.quantize_both(2, "--activation-observer", "min_max", *words)
            self.assertEqual(found["weights"], 7, words)
            self.assertLess(found["worst"], 1e-5, words)

    def test_statistics_in_files(self):
        self.launch(2, "calibrate", "2/part{rank}.onnx", "-o", "part{rank}.stats", "--data",
                    "tokens.npy")
        self.launch(2, "quantize", "2/part{rank}.onnx", "-o", "a{rank}.onnx", "--stats",
                    "part{rank}.stats", "--activation-observer", "mse")
        self.run_quench("quantize", "2/whole.onnx", "-o", "whole8.onnx", "--data", "tokens.npy",
                        "--activation-observer", "mse", *PLAIN)
        found = json.loads(self.sharded("compare", "whole8.onnx", "a0.onnx", "a1.onnx"))
        self.assertLess(found["worst"], 1e-5)

    def test_rules_by_the_type_of_layer(self):
        self.launch(2, "quantize", "2/part{rank}.onnx", "-o", "rules{rank}.onnx", "--data",
                    "tokens.npy", "--rule", "type:RowParallelLinear:skip")
        counts = [json.loads(self.run_quench("inspect", model, "--json").stdout)["operators"]
                  for model in ("rules0.onnx", "rules1.onnx")]
        self.assertEqual(counts[0], counts[1])
        # Of seven layers two are row-parallel; the others have weights of integers.
        lines = self.run_quench("lint", "rules0.onnx").stdout
        self.assertEqual(len(re.findall(r"^(row_out|down)_part_node +float", lines, re.M)), 2, lines)
        self.assertEqual(len(re.findall(r"_product_node +integers", lines)), 5, lines)

    def test_eval(self):
        self.run_quench("quantize", "2/whole.onnx", "-o", "whole8.onnx", "--data", "tokens.npy",
                        "--activation-observer", "mse", *PLAIN)
        self.launch(2, "quantize", "2/part{rank}.onnx", "-o", "e{rank}.onnx", "--data",
                    "tokens.npy", "--activation-observer", "mse")
        words = ["--data", "tokens.npy", "--reference", "2/whole.onnx", "--metric", "sqnr", "--json"]
        split = json.loads(self.launch(2, "eval", "e{rank}.onnx", *words).stdout)
        whole = json.loads(self.run_quench("eval", "whole8.onnx", *words).stdout)
        self.assertGreater(split["sqnr"], 25)
        self.assertAlmostEqual(split["sqnr"], whole["sqnr"], delta=1.5)
        floats = json.loads(self.launch(2, "eval", "2/part{rank}.onnx", *words).stdout)
        self.assertGreater(floats["sqnr"], 100)

    def test_sensitivity(self):
        """Which layer it is, is the same for parts as for one part of all."""
        def rank(ranks, model, *words):
            result = self.launch(ranks, "analyze", "sensitivity", model, "--data", "tokens.npy",
                                 "--activation-observer", "mse", "-o", f"ranking{ranks}", "--json", *words)
            self.assertTrue((self.dir / f"ranking{ranks}" / "analysis.txt").exists())
            return json.loads(result.stdout)

        whole = rank(1, "2/joined.onnx")
        self.assertEqual(len(whole["layers"]), 7)
        for ranks in (2, 4):
            parts = rank(ranks, f"{ranks}/part{{rank}}.onnx")
            self.assertAlmostEqual(parts["quantized"], whole["quantized"], delta=0.05)
            for own, expected in zip(parts["layers"], whole["layers"], strict=True):
                self.assertEqual(own["layer"], expected["layer"])
                self.assertAlmostEqual(own["sqnr"], expected["sqnr"], delta=0.05, msg=own["layer"])
        self.assertEqual(rank(2, "2/part{rank}.onnx", "--resume")["resumed"], 7)

    # One sentence each.

    def refused(self, mention, *words, expect, ranks=2):
        result = self.launch(ranks, *words, expect=expect)
        self.assertIn(mention, result.stderr)
        self.assertFalse((self.dir / "never.onnx").exists())

    def test_what_cannot_be_done(self):
        data = ["--data", "tokens.npy"]
        part = "2/part{rank}.onnx"
        self.refused("would both write 'never.onnx'", "quantize", part, "-o", "never.onnx", *data,
                     expect=2)
        self.refused("the same on all ranks, though it is a ColumnParallelLinear", "quantize",
                     "2/part0.onnx", "-o", "never{rank}.onnx", *data, expect=3)
        self.refused("no layer that is split over ranks", "quantize", "2/whole.onnx", "-o",
                     "never{rank}.onnx", *data, expect=3)
        self.refused("quantise each part by itself", "quantize", part, "-o", "never{rank}.onnx",
                     "--type", "weight", expect=2)
        self.refused("--equalize looks at whole layers", "quantize", part, "-o", "never{rank}.onnx",
                     *data, "--equalize", "always", expect=2)
        for words, expect in ((["--quick"], 2), (["--metric-command", "true"], 2), (["--float", "2/whole.onnx"], 2),
                              (["--equalize", "always"], 2)):
            self.refused(words[0], "analyze", "sensitivity", part, *data, *words, expect=expect)
        self.refused("it joins 2 parts, but 3 processes run the model", "eval", "2/part0.onnx",
                     "--reference", "2/whole.onnx", *data, expect=4, ranks=3)
        alone = self.run_quench("eval", "2/part0.onnx", "--reference", "2/whole.onnx", *data,
                                expect=4)
        self.assertIn("run all parts together", alone.stderr)
        without = self.run_quench("quantize", "2/part0.onnx", "-o", "never.onnx", *data,
                                  "--tensor-parallel", expect=2)
        self.assertIn("--distributed", without.stderr)

    def test_ranks_that_disagree(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        started = []
        for rank, observer in enumerate(("mse", "KL")):
            place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": port}
            started.append(subprocess.Popen(
                [harness.PROGRAM, "quantize", "2/part{rank}.onnx", "-o", "never{rank}.onnx", "--data",
                 "tokens.npy", "--activation-observer", observer, "--distributed",
                 "--tensor-parallel"], cwd=self.dir, env={**os.environ, **place},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        for each in started:
            out, errors = each.communicate(timeout=60)
            self.assertEqual((each.returncode, out), (3, ""), errors)
            self.assertRegex(errors, r"\Aquench: error: [^\n]*what is asked for of rank 1 is not that of "
                             r"rank 0[^\n]*\n\Z")
        self.assertFalse((self.dir / "never0.onnx").exists())

    def test_a_weight_that_nothing_says_how_it_is_split(self):
        (self.dir / "open").mkdir()
        self.sharded("make", self.dir / "open", 2, "open")
        self.refused("the weight of the MatMul node 'head_product_node' differs between ranks",
                     "quantize", "open/part{rank}.onnx", "-o", "never{rank}.onnx", "--data",
                     "tokens.npy", expect=3)


if __name__ == "__main__":
    unittest.main()
