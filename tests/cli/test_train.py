# SPDX-License-Identifier: Apache-2.0
"""quench train: what it writes, how it goes on after a stop, and what it does about bad input."""
import json
import os
import re
import resource
import signal
import subprocess
import time
import unittest

import harness

TRAIN = ("--held-out", "4", "--threads", "1")
BITS = ("--weight-bits", "3")
BATCH = ("--train-batch", "4")


class TrainTest(harness.CliTest):
    def train(self, out, *words, model="model.onnx", bits=BITS, batch=BATCH, **options):
        return self.run_quench("train", model, "-o", out, "--data", "images.npy", *TRAIN, *bits,
                               *batch, *words, **options)

    def bytes_of(self, name):
        return (self.dir / name).read_bytes()

    def test_by_distillation(self):
        report = json.loads(self.train("plain.onnx", "--steps", "30", "--json").stdout)
        training = report["training"]
        self.assertEqual((training["steps"], training["samples"]), (30, 16))
        self.assertEqual(training["score"], "sqnr")
        scores = [point["score"] for point in training["curve"] if point.get("score") is not None]
        self.assertGreater(max(scores), training["start_score"])
        self.assertFalse((self.dir / "plain.onnx.checkpoint").exists())
        scores = self.run_json("eval", "plain.onnx", "--data", "images.npy", "--reference",
                               "model.onnx", "--metric", "sqnr")
        self.assertGreater(scores["sqnr"], 10)

    def test_few_samples_are_pointed_to_reconstruction(self):
        advice = "--reconstruct first learns how to round them"
        few = self.train("few.onnx", "--steps", "1")
        self.assertIn("16 samples are few to train weights of 4 bits or less", few.stderr)
        self.assertIn(advice, few.stderr)
        for words, bits in ((("--reconstruct", "--reconstruct-steps", "1"), BITS), ((), ())):
            told = self.train("told.onnx", "--steps", "1", *words, bits=bits).stderr
            self.assertNotIn(advice, told)

    def test_text_and_curve_in_the_report(self):
        text = self.train("page.onnx", "--steps", "20", "--report", "page.html").stdout
        self.assertRegex(text, r"training step that was kept +\d+ of 20|none: the validation")
        page = (self.dir / "page.html").read_text()
        data = json.loads(re.search(r'<script id="quench-data"[^>]*>(.*?)</script>', page)[1])
        self.assertEqual(data["training"]["points"][-1]["step"], 20)
        self.assertIsNotNone(data["training"]["points"][-1]["score"])

    def test_by_labels(self):
        labels = self.predictions()
        harness.write_npy(self.dir / "own.npy", "<i8", (harness.IMAGES,), labels)
        report = json.loads(self.train("labels.onnx", "--labels", "own.npy", "--steps", "10",
                                       "--optimizer", "sgd", "--rate", "0.001", "--json").stdout)
        self.assertEqual(report["training"]["score"], "top1")

    def test_two_runs_give_the_same_bytes(self):
        self.train("one.onnx", "--steps", "8", "--seed", "5")
        self.train("two.onnx", "--steps", "8", "--seed", "5")
        self.assertEqual(self.bytes_of("one.onnx"), self.bytes_of("two.onnx"))

    def test_stops_where_nothing_is_gained(self):
        report = json.loads(self.train("idle.onnx", "--steps", "400", "--rate", "1e-12", "--patience",
                                       "2", "--json").stdout)
        self.assertLess(report["training"]["steps"], 100)
        self.assertEqual(report["training"]["best_step"], 0)  # what it began with is written

    def test_as_long_as_it_is_given(self):
        began = time.monotonic()
        report = json.loads(self.train("timed.onnx", "--minutes", "0.02", "--json").stdout)
        self.assertGreater(report["training"]["steps"], 0)
        self.assertGreaterEqual(report["training"]["seconds"], 1.2)
        self.assertLess(time.monotonic() - began, 60)

    def test_layers_are_distilled_too(self):
        words = ("--steps", "8", "--json")
        losses = []
        for features in ("0", "1"):
            report = json.loads(self.train(f"features{features}.onnx", *words, "--distill-features",
                                           features).stdout)
            losses.append(report["training"]["curve"][0]["loss"])
        self.assertGreater(losses[1], losses[0])

    def test_images_are_varied_while_rounding_is_learned(self):
        words = ("quantize", "model.onnx", "--data", "images.npy", *TRAIN, *BITS)
        for name, more in (("still", ()), ("moved", ("--flip", "--crop", "1"))):
            self.run_quench(*words, "-o", f"{name}.onnx", "--reconstruct", "--reconstruct-steps", "10",
                            *more)
        self.assertNotEqual(self.bytes_of("still.onnx"), self.bytes_of("moved.onnx"))
        error = self.run_quench(*words, "-o", "idle.onnx", "--flip", expect=2).stderr
        self.assertIn("--reconstruct", error)

    # Stops.

    def stopped(self, out, how, *words):
        """A run that a signal ends once a checkpoint lies there."""
        checkpoint = self.dir / f"{out}.checkpoint"
        command = [harness.PROGRAM, "train", "model.onnx", "-o", out, "--data", "images.npy", *TRAIN,
                   *BITS, *BATCH, *words]
        with subprocess.Popen(command, cwd=self.dir, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 60
            while not checkpoint.exists() and time.monotonic() < deadline:
                time.sleep(0.001)
            process.send_signal(how)
            process.wait()
        self.assertNotEqual(process.returncode, 0, "it ended before it was stopped")
        self.assertFalse((self.dir / out).exists())

    def test_killed_and_resumed_gives_the_same_bytes(self):
        words = ("--steps", "400", "--checkpoint-steps", "3")
        self.train("whole.onnx", *words)
        for how in (signal.SIGKILL, signal.SIGINT):
            self.stopped("resumed.onnx", how, *words)
            self.train("resumed.onnx", *words, "--resume")
            self.assertEqual(self.bytes_of("whole.onnx"), self.bytes_of("resumed.onnx"), how)
            (self.dir / "resumed.onnx").unlink()

    def test_checkpoint_of_something_else(self):
        words = ("--steps", "400", "--checkpoint-steps", "3")
        self.stopped("other.onnx", signal.SIGKILL, *words)
        kept = self.bytes_of("other.onnx.checkpoint")
        for more in ({"batch": ("--train-batch", "8")}, {"bits": ("--weight-bits", "4")},
                     {"model": "reference.onnx"}):
            error = self.train("other.onnx", *words, "--resume", expect=3, **more).stderr
            self.assertIn("is of another model or other settings", error)
        self.assertEqual(kept, self.bytes_of("other.onnx.checkpoint"))
        (self.dir / "other.onnx.checkpoint").write_bytes(kept[:len(kept) // 2])
        error = self.train("other.onnx", *words, "--resume", expect=3).stderr
        self.assertIn("is no checkpoint, or it is damaged", error)
        self.assertFalse((self.dir / "other.onnx").exists())

    def test_disk_full_at_a_checkpoint(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        error = self.train("full.onnx", "--steps", "20", "--checkpoint-steps", "5", expect=3,
                           preexec_fn=small_files).stderr
        self.assertIn("full.onnx.checkpoint", error)
        self.assertFalse((self.dir / "full.onnx").exists())
        self.assertEqual(list(self.dir.glob("full.onnx*")), [])

    def test_loss_that_is_not_a_number(self):
        error = self.train("nan.onnx", "--steps", "20", "--rate", "1e30", "--checkpoint-steps", "1",
                           expect=3).stderr
        self.assertRegex(error, r"the loss is not a number at step \d+, first in \S+")
        self.assertIn("the checkpoint 'nan.onnx.checkpoint' is as it was", error)
        self.assertTrue((self.dir / "nan.onnx.checkpoint").exists())
        self.assertFalse((self.dir / "nan.onnx").exists())

    # Input that does not fit.

    def test_labels_out_of_range(self):
        for wrong in (99, -1):
            harness.write_npy(self.dir / "wrong.npy", "<i8", (harness.IMAGES,),
                              [wrong] * harness.IMAGES)
            error = self.train("bad.onnx", "--labels", "wrong.npy", expect=3).stderr
            self.assertIn(f"label {wrong}", error)
            self.assertIn("10", error)

    def test_as_many_labels_as_samples(self):
        harness.write_npy(self.dir / "few.npy", "<i8", (3,), [1, 2, 3])
        error = self.train("bad.onnx", "--labels", "few.npy", expect=3).stderr
        self.assertIn("few.npy", error)

    def test_no_labels_to_train_with(self):
        error = self.train("bad.onnx", "--loss", "labels", expect=3).stderr
        self.assertIn("has no labels", error)

    def test_fewer_samples_than_a_batch(self):
        error = self.train("bad.onnx", batch=("--train-batch", "64"), expect=3).stderr
        self.assertIn("a batch has 64; give more, or --train-batch 16", error)

    def test_nothing_to_train(self):
        error = self.train("bad.onnx", model="relu.onnx", expect=4).stderr
        self.assertIn("no layer of 'relu.onnx' can be quantised", error)

    def test_operators_without_gradient(self):
        error = self.train("bad.onnx", model="argmax.onnx", expect=4).stderr
        self.assertIn("these nodes have no gradient", error)
        self.assertIn("argmax_node", error)

    def test_wrong_words(self):
        for words, told in ((("--optimizer", "adagrad"), "adamw"), (("--epochs", "-1"), "--epochs"),
                            (("--weight-quanter", "lsk"), "lsq"),
                            (("--weight-quanter", "moving_average_abs_max"), "activations only"),
                            (("--steps", "3", "--epochs", "2"), "--steps"),
                            (("--momentum", "0.5"), "sgd")):
            result = subprocess.run([harness.PROGRAM, "train", "model.onnx", "-o", "bad.onnx", "--data",
                                     "images.npy", *words], cwd=self.dir, capture_output=True,
                                    text=True, check=False, timeout=100)
            self.assertIn(result.returncode, (2, 3), words)
            self.assertIn(told, result.stderr, words)
        self.assertFalse((self.dir / "bad.onnx").exists())
        self.assertFalse((self.dir / "bad.onnx.checkpoint").exists())

    def test_the_checkpoint_is_not_the_model(self):
        before = self.bytes_of("model.onnx")
        self.train("bad.onnx", "--checkpoint", "model.onnx", expect=2)
        self.assertEqual(before, self.bytes_of("model.onnx"))


if __name__ == "__main__":
    unittest.main()
