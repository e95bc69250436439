# SPDX-License-Identifier: Apache-2.0
"""quench run."""
import json
import resource
import unittest

import harness


class RunTest(harness.CliTest):
    def test_writes_outputs(self):
        result = self.run_json("run", "model.onnx", "--input", "x=x.npy", "-o", "deep/out")
        value = result["values"][0]
        self.assertEqual((value["name"], value["type"], value["shape"], value["file"]),
                         ("scores", "float32", [1, 10], "scores.npy"))
        shape, scores = harness.read_npy(self.dir / "deep/out/scores.npy")
        self.assertEqual(shape, (1, 10))
        self.assertAlmostEqual(value["min"], min(scores), places=5)
        self.assertAlmostEqual(value["max"], max(scores), places=5)
        self.assertAlmostEqual(value["mean"], sum(scores) / 10, places=5)
        index = json.loads((self.dir / "deep/out/index.json").read_text(encoding="utf-8"))
        self.assertEqual(index["scores"]["file"], "scores.npy")

    def test_only_input_needs_no_name(self):
        named = self.run_json("run", "model.onnx", "--input", "x=x.npy")
        self.assertEqual(self.run_json("run", "model.onnx", "--input", "x.npy"), named)

    def test_made_up_inputs(self):
        for source in ("zeros", "ones", "random", "random:3"):
            result = self.run_json("run", "model.onnx", "--input", f"x={source}")
            self.assertEqual(result["values"][0]["shape"], [1, 10])
        first = self.run_json("run", "model.onnx", "--input", "x=random:3")
        self.assertEqual(first, self.run_json("run", "model.onnx", "--input", "x=random:3"))
        self.assertNotEqual(first, self.run_json("run", "model.onnx", "--input", "x=random:4"))

    def test_open_dimensions_take_a_shape(self):
        result = self.run_json("run", "odd.onnx", "--input", "in:0=ones",
                               "--shape", "in:0=2,3,4,5")
        self.assertEqual([value["max"] for value in result["values"]], [1, -1, 1])
        self.assertEqual(result["values"][0]["shape"], [2, 3, 4, 5])
        error = self.run_quench("run", "odd.onnx", "--input", "in:0=ones", expect=3).stderr
        self.assertIn("--shape in:0=", error)

    def test_odd_names_become_plain_files(self):
        self.run_quench("run", "odd.onnx", "--input", "in:0=ones", "--shape", "in:0=1,3,2,2",
                        "-o", "odd")
        files = sorted(path.name for path in (self.dir / "odd").iterdir())
        self.assertEqual(len(files), 4)
        index = json.loads((self.dir / "odd/index.json").read_text(encoding="utf-8"))
        self.assertEqual(sorted(entry["file"] for entry in index.values()),
                         [name for name in files if name != "index.json"])
        for name in files:
            self.assertRegex(name, r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")

    def scores(self, model, *flags):
        self.run_quench("run", model, "--input", "x=x.npy", "-o", "scores_out", *flags)
        return harness.read_npy(self.dir / "scores_out" / "scores.npy")[1]

    def test_packed_and_on_the_fly(self):
        self.run_quench("quantize", "model.onnx", "--type", "weight", "--bits", "8",
                        "--min-weight-channel", "0", "-o", "w8.onnx")
        self.run_quench("pack", "w8.onnx", "-o", "w8.qnch")
        expected = self.scores("w8.onnx", "--dequant", "at-load")
        self.assertEqual(self.scores("w8.onnx"), expected)
        self.assertEqual(self.scores("w8.qnch"), expected)
        for model in ("w8.onnx", "w8.qnch", "model.onnx"):
            for ours, plain in zip(self.scores(model, "--dequant", "on-the-fly"),
                                   self.scores(model)):
                self.assertAlmostEqual(ours, plain, places=4)
        self.assertIn("on-the-fly", self.run_quench("run", "w8.onnx", "--input", "x=x.npy",
                                                    "--dequant", "never", expect=2).stderr)

    def test_rounding_twice(self):
        refused = self.run_quench("run", "model.onnx", "--input", "x=x.npy", "--rounding", "twice",
                                  expect=2)
        self.assertRegex(refused.stderr, "no convolution of the model runs on integers.*leave it out")
        self.run_quench("quantize", "model.onnx", "-o", "int8.onnx", "--data", "images.npy")
        once, twice = self.scores("int8.onnx"), self.scores("int8.onnx", "--rounding", "twice")
        self.assertEqual(len(once), len(twice))
        spread = max(once) - min(once)
        for a, b in zip(once, twice):
            self.assertAlmostEqual(a, b, delta=0.1 * spread)

    def test_taps(self):
        result = self.run_json("run", "model.onnx", "--input", "x=x.npy", "--tap", "conv",
                               "--tap", "relu")
        values = {value["name"]: value for value in result["values"]}
        self.assertEqual(values["conv"]["shape"], [1, 16, 6, 6])
        self.assertLess(values["conv"]["min"], 0)
        self.assertEqual(values["relu"]["min"], 0)
        self.assertAlmostEqual(values["relu"]["max"], values["conv"]["max"], places=5)

    def test_wrong_inputs(self):
        harness.write_npy(self.dir / "ints.npy", "<i8", (1, 3, 8, 8), [1] * 192)
        harness.write_npy(self.dir / "small.npy", "<f4", (1, 3, 8, 7), [1] * 168)
        table = [
            (["--input", "y=x.npy"], "there is no input 'y'; the model has x"),
            ([], "input 'x'"),
            (["--input", "x=nowhere.npy"], "nowhere.npy"),
            (["--input", "x=ints.npy"], "int64[1,3,8,8]"),
            (["--input", "x=small.npy"], "float32[1,3,8,7]"),
            (["--input", "x=ones", "--shape", "x=1,3,8,9"], "does not fit"),
            (["--input", "x=ones", "--shape", "z=1,3,8,8"], "'z'"),
            (["--input", "x=ones", "--shape", "x=99999999999,3,8,8"], "too large"),
            (["--input", "x=ones", "--tap", "rleu"], "did you mean 'relu'?"),
        ]
        for words, mention in table:
            with self.subTest(words=words):
                error = self.run_quench("run", "model.onnx", *words, "-o", "wrong", expect=3)
                self.assertIn(mention, error.stderr)
                self.assertFalse((self.dir / "wrong").exists())

    def test_output_folder_that_cannot_be_made(self):
        error = self.run_quench("run", "model.onnx", "--input", "x=x.npy", "-o", "x.npy/out",
                                expect=3)
        self.assertIn("x.npy/out", error.stderr)

    def test_what_does_not_fit_into_memory_is_named(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

        error = self.run_quench("run", "huge.onnx", expect=4, preexec_fn=limit).stderr
        self.assertIn("'fill'", error)
        self.assertIn("not enough memory", error)

    def test_a_range_of_vectors_is_named(self):
        harness.write_npy(self.dir / "two.npy", "<f4", (2,), [3, 4])
        error = self.run_quench("run", "range.onnx", "--input", "two.npy", expect=3).stderr
        self.assertIn("'count'", error)
        self.assertIn("one number each, not 2", error)

    def test_unsupported_operator_has_its_own_code(self):
        error = self.run_quench("run", "unsupported.onnx", "--input", "x=ones", expect=4)
        self.assertIn("strange_node", error.stderr)


if __name__ == "__main__":
    unittest.main()
