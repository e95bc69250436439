# SPDX-License-Identifier: Apache-2.0
"""quench calibrate: the file of statistics, and what it refuses."""
import shutil
import signal
import subprocess
import time
import unittest

import harness

SIZE = 3 * 8 * 8


class CalibrateTest(harness.CliTest):
    def statistics(self, name, *words, data="images.npy"):
        self.run_quench("calibrate", "model.onnx", "-o", name, "--data", data, *words)
        return (self.dir / name).read_bytes()

    def check_refused(self, mention, *words, expect=3):
        out = self.dir / "kept.stats"
        out.write_bytes(b"what was there before")
        error = self.run_quench("calibrate", "model.onnx", "-o", out.name, *words, expect=expect)
        self.assertIn(mention, error.stderr)
        self.assertEqual(out.read_bytes(), b"what was there before")

    def test_threads_and_batch_do_not_matter(self):
        made = set()
        for words in ([], ["--threads", "1"], ["--threads", "2"], ["--batch", "1"],
                      ["--batch", "7"]):
            self.statistics("x.stats", *words)
            for observer in ("min_max", "mse", "KL", "hist"):
                self.run_quench("quantize", "model.onnx", "-o", f"{observer}.onnx", "--stats",
                                "x.stats", "--activation-observer", observer, "--no-metadata")
                made.add((observer, (self.dir / f"{observer}.onnx").read_bytes()))
        self.assertEqual(len(made), 4)

    def test_size_does_not_grow_with_samples(self):
        few = len(self.statistics("few.stats", "--limit", "10"))
        self.assertLess(len(self.statistics("all.stats")), 2 * few)

    def test_says_nothing_on_stdout(self):
        text = self.run_quench("calibrate", "model.onnx", "-o", "quiet.stats", "--data",
                               "images.npy").stdout
        self.assertEqual(text, "")

    def test_bad_data(self):
        self.check_refused("--data", expect=2)
        self.check_refused("nowhere", "--data", "nowhere")
        (self.dir / "empty").mkdir()
        self.check_refused("empty holds no samples", "--data", "empty")
        harness.write_npy(self.dir / "wide.npy", "<f4", (2, 3, 8, 9), [0] * 432)
        self.check_refused("wide.npy", "--data", "wide.npy")

    # Stopped in the middle.

    def killed_pass(self, number=signal.SIGKILL):
        """A pass over many samples that is stopped after its first snapshot."""
        samples = 4000
        harness.write_npy(self.dir / "many.npy", "<f4", (samples, 3, 8, 8),
                          [((i * 7919) % 1000) / 250 - 2 for i in range(samples * SIZE)])
        partial = self.dir / "many.stats.partial"
        process = subprocess.Popen(
            [harness.PROGRAM, "calibrate", "model.onnx", "-o", "many.stats", "--data", "many.npy",
             "--batch", "1", "--threads", "1", "--snapshot-every", "0.05"], cwd=self.dir,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not partial.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        self.assertIsNone(process.poll(), "ended before it could be stopped")
        process.send_signal(number)
        process.wait(timeout=60)
        self.assertTrue(partial.exists())
        self.assertFalse((self.dir / "many.stats").exists())

    def resume(self, *words, model="model.onnx", expect=0):
        return self.run_quench("calibrate", model, "-o", "many.stats", "--data", "many.npy",
                               "--batch", "1", "--resume", *words, expect=expect)

    def test_killed_pass_goes_on_to_the_same_bytes(self):
        for number in (signal.SIGKILL, signal.SIGINT):
            self.killed_pass(number)
            log = self.resume("--verbose").stderr
            self.assertRegex(log, r"going on after [1-9]\d* samples")
            resumed = (self.dir / "many.stats").read_bytes()
            self.assertEqual(list(self.dir.glob("many.stats?*")), [])
            whole = self.statistics("many.stats", "--batch", "1", data="many.npy")
            self.assertEqual(resumed, whole)
            (self.dir / "many.stats").unlink()

    def test_snapshot_of_something_else_is_noticed(self):
        self.killed_pass()
        self.assertIn("other settings", self.resume("--target", "generic", expect=3).stderr)
        self.assertIn("other model", self.resume(model="fixed.onnx", expect=3).stderr)
        changed = bytearray((self.dir / "many.npy").read_bytes())
        changed[200] ^= 64
        (self.dir / "many.npy").write_bytes(changed)
        self.assertIn("other data", self.resume(expect=3).stderr)
        (self.dir / "many.stats.partial").write_bytes(b"QNCHSTAT rubbish")
        self.assertIn("many.stats.partial", self.resume(expect=3).stderr)
        (self.dir / "many.stats.partial").unlink()

    def test_nothing_to_go_on_from(self):
        fresh = self.statistics("fresh.stats")
        self.assertEqual(self.statistics("fresh.stats", "--resume"), fresh)

    # Several files.

    def test_files_are_merged(self):
        shape, values = harness.read_npy(self.dir / "images.npy")
        for name, begin, end in (("a", 0, 8), ("b", 8, 20)):
            harness.write_npy(self.dir / f"{name}.npy", "<f4", (end - begin, *shape[1:]),
                              values[begin * SIZE:end * SIZE])
            self.statistics(f"{name}.stats", "--held-out", "0", data=f"{name}.npy")
        self.statistics("whole.stats", "--held-out", "0")
        for observer in ("KL", "moving_average_abs_max", "avg"):
            words = ["--activation-observer", observer, "--no-metadata"]
            self.run_quench("quantize", "model.onnx", "-o", "merged.onnx", *words, "--stats",
                            "a.stats", "b.stats")
            self.run_quench("quantize", "model.onnx", "-o", "whole.onnx", *words, "--stats",
                            "whole.stats")
            self.assertEqual((self.dir / "merged.onnx").read_bytes(),
                             (self.dir / "whole.onnx").read_bytes(), observer)

    def test_statistics_of_another_model_are_refused(self):
        self.statistics("mine.stats")
        shutil.copy(self.dir / "fixed.onnx", self.dir / "other.onnx")
        error = self.run_quench("quantize", "other.onnx", "-o", "no.onnx", "--stats", "mine.stats",
                                expect=3).stderr
        self.assertIn("another model", error)

    def test_output_that_cannot_be_written(self):
        error = self.run_quench("calibrate", "model.onnx", "-o", "nowhere/out.stats", "--data",
                                "images.npy", expect=3).stderr
        self.assertIn("nowhere/out.stats", error)


if __name__ == "__main__":
    unittest.main()
