# SPDX-License-Identifier: Apache-2.0
"""Paddle models on the command line: every command takes them, and bad ones are told apart."""
import shutil
import unittest

import harness

DATA = ("--data", "images.npy")


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def read_varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return number, at


def message(tag, body):
    return bytes([tag]) + varint(len(body)) + body


def split_block(program):
    """The first block of a program, and what follows it."""
    size, start = read_varint(program, 1)
    return program[start:start + size], program[start + size:]


class PaddleTest(harness.CliTest):
    def setUp(self):
        for name in ("model", "norm"):
            self.run_quench("convert", f"{name}.onnx", "-o", f"{name}.pdmodel")
        folder = self.dir / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for suffix in ("pdmodel", "pdiparams"):
            shutil.copy(self.dir / f"model.{suffix}", folder / f"inference.{suffix}")
        self.program = (self.dir / "model.pdmodel").read_bytes()
        self.params = (self.dir / "model.pdiparams").read_bytes()

    def bad(self, program, params, *mentions, code=3):
        """What is told of a program and its parameters."""
        (self.dir / "bad.pdmodel").write_bytes(program)
        (self.dir / "bad.pdiparams").unlink(missing_ok=True)
        if params is not None:
            (self.dir / "bad.pdiparams").write_bytes(params)
        error = self.run_quench("inspect", "bad.pdmodel", expect=code).stderr
        self.assertEqual(len(error.splitlines()), 1, error)
        for mention in ("bad.pd", *mentions):
            self.assertIn(mention, error)

    # -- every command ------------------------------------------------------------------------

    def test_reading_commands(self):
        for model in ("folder", "folder/inference.pdmodel"):
            self.assertEqual(self.run_json("inspect", model)["outputs"][0]["name"], "scores")
            self.run_quench("run", model, "--input", "x=x.npy", "-o", "out")
            self.run_quench("bench", model, "--runs", "2", "--threads", "1")
            self.run_quench("eval", model, *DATA, "--labels", "labels.npy")
        named = ("folder", "--model-filename", "inference.pdmodel", "--params-filename",
                 "inference.pdiparams")
        self.run_quench("inspect", *named)
        self.assertEqual(self.predictions("folder"), self.predictions())

    def test_quantise_and_what_follows(self):
        quick = (*DATA, "--threads", "1")
        self.run_quench("quantize", "folder", "-o", "q.pdmodel", *quick, "--report", "q.html")
        self.run_quench("quantize", "folder", "-o", "q.onnx", *quick)
        self.run_quench("quantize", "folder", "-o", "q.json", *quick)
        self.run_quench("quantize", "folder", "-o", "w.pdmodel", "--type", "weight")
        self.run_quench("quantize", "folder", "-o", "d.onnx", "--type", "dynamic")
        self.assertEqual(self.run_json("lint", "q.pdmodel")["target"], "paddle")
        for model in ("q.pdmodel", "q.onnx", "q.json", "w.pdmodel", "d.onnx"):
            found = self.run_json("compare", "folder", model, *DATA)
            self.assertGreater(found["outputs"][0]["cosine"], 0.98, model)
        self.run_quench("pack", "q.pdmodel", "-o", "q.qnch")
        self.run_quench("unpack", "q.qnch", "-o", "again.pdmodel")
        same = self.run_json("compare", "q.pdmodel", "again.pdmodel", *DATA)
        self.assertEqual(same["outputs"][0]["max_abs"], 0)
        self.run_quench("convert", "q.pdmodel", "-o", "again.onnx")

    def test_statistics_serve_a_later_run(self):
        self.run_quench("calibrate", "folder", "-o", "m.stats", *DATA)
        self.run_quench("quantize", "folder", "-o", "s.pdmodel", "--stats", "m.stats")

    def test_analysis(self):
        self.run_quench("analyze", "statistics", "folder", *DATA, "-o", "an")
        self.run_quench("analyze", "sensitivity", "folder", *DATA, "-o", "an")
        text = (self.dir / "an" / "analysis.txt").read_text().splitlines()[0]
        worst = text.split("layer name: ")[1].split(", eval metric")[0]
        self.run_quench("quantize", "folder", "-o", "q.pdmodel", *DATA, "--skip-tensor", worst)
        self.run_quench("analyze", "target", "folder", *DATA, "-o", "an", "--metric", "sqnr",
                        "--at-least", "1")
        self.assertTrue((self.dir / "an/target_quant_model/model.pdmodel").exists())

    def test_train(self):
        self.run_quench("train", "folder", "-o", "t.pdmodel", *DATA, "--labels", "labels.npy",
                        "--epochs", "1", "--train-batch", "8", "--threads", "1")
        self.run_quench("compare", "folder", "t.pdmodel", *DATA)

    # -- refused before the work --------------------------------------------------------------

    def test_what_the_file_cannot_hold_is_told_before_the_work(self):
        for words in (("quantize", "folder", "-o", "no.pdmodel", "--target", "onnxruntime", *DATA),
                      ("analyze", "target", "folder", "--model-out", "no.pdmodel", "--target",
                       "onnxruntime", "--metric", "sqnr", "--at-least", "1", *DATA)):
            error = self.run_quench(*words, expect=2).stderr
            self.assertIn("'no.pdmodel' can only hold symmetric", error)
            self.assertIn("take target 'paddle'", error)
        self.assertFalse((self.dir / "no.pdmodel").exists())

    def test_extensions(self):
        for name in ("x.pd", "x.pdiparams", "x"):
            error = self.run_quench("convert", "folder", "-o", name, expect=2).stderr
            self.assertIn(".pdmodel", error)
            self.assertFalse((self.dir / name).exists())

    # -- bad input ----------------------------------------------------------------------------

    def test_a_folder_is_made(self):
        self.run_quench("convert", "model.onnx", "-o", "made/")
        self.assertTrue((self.dir / "made/inference.pdiparams").exists())
        self.run_quench("inspect", "made")

    def test_program_without_parameters(self):
        self.bad(self.program, None, "parameters", "--params-filename")

    def test_parameters_of_another_model(self):
        self.bad(self.program, (self.dir / "norm.pdiparams").read_bytes(), "another model")

    def test_truncated(self):
        self.bad(self.program[:len(self.program) // 2], self.params, "cut off")
        self.bad(self.program, self.params[:-3], "cut off", "pdiparams")

    def test_too_long(self):
        self.bad(self.program, self.params + b"xyz", "3 bytes more", "pdiparams")

    def test_unknown_operator(self):
        self.assertIn(b"\x04relu", self.program)
        self.bad(self.program.replace(b"\x04relu", b"\x04rluu"), self.params, "rluu", code=4)

    def test_unknown_attribute_type(self):
        known = b"\x0a\x04axis\x10\x00"
        self.assertIn(known, self.program)
        self.bad(self.program.replace(known, known[:-1] + b"\x63"), self.params, "'axis'",
                 "type that is not known")

    def test_newer_version(self):
        # A later message of the same field is merged into the first.
        newer = message(0x22, b"\x08" + varint(4000000))
        self.bad(self.program + newer, self.params, "Paddle 4.0.0", code=4)

    def test_name_that_exists_twice(self):
        block, rest = split_block(self.program)
        at = block.index(b"\x1a")  # the first variable
        size, start = read_varint(block, at + 1)
        twice = block + block[at:start + size]
        self.bad(message(0x0a, twice) + rest, self.params, "two variables")

    def test_folder_with_two_models(self):
        shutil.copy(self.dir / "model.pdmodel", self.dir / "folder" / "other.pdmodel")
        error = self.run_quench("inspect", "folder", expect=3).stderr
        for mention in ("folder", "several models", "inference.pdmodel", "other.pdmodel"):
            self.assertIn(mention, error)

    def test_pir(self):
        self.run_quench("convert", "folder", "-o", "p.json")
        text = (self.dir / "p.json").read_text()
        for bad, mention in ((text[:len(text) // 2], "p.json"),
                             (text.replace("1.relu", "1.rluu"), "rluu")):
            (self.dir / "p.json").write_text(bad)
            code = 4 if mention == "rluu" else 3
            self.assertIn(mention, self.run_quench("inspect", "p.json", expect=code).stderr)


if __name__ == "__main__":
    unittest.main()
