# SPDX-License-Identifier: Apache-2.0
"""--device cuda beside the CPU: the same scales, files and answers. Skipped where there is no GPU, or the
engine's libtorch has no CUDA."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

import harness

EXAMPLE = harness.SOURCE / "examples" / "data"
FASHION = EXAMPLE / "fashion.onnx"
IMAGES = ("--data", EXAMPLE / "fashion-test-images-idx3-ubyte.gz", "--mean", "72.9", "--std", "90")
LABELS = ("--labels", EXAMPLE / "fashion-test-labels-idx1-ubyte.gz")
GPU = ("--device", "cuda")


class GpuTest(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tried = subprocess.run([harness.PROGRAM, "run", "model.onnx", "--input", "x=x.npy", "-o", "tried", *GPU],
                               cwd=cls.dir, check=False, capture_output=True, text=True)
        if tried.returncode == 4:
            raise unittest.SkipTest(tried.stderr.strip())

    def scales(self, model):
        """The scales of activations in a quantised model, by name."""
        dump = self.run_quench("inspect", model, "--dump").stdout
        found = re.findall(r"const %(\S+)_scale: float32\[\] \{(\S+)\}", dump)
        self.assertTrue(found)
        return {name: float(number) for name, number in found}

    def bytes_of(self, name):
        return pathlib.Path(self.dir / name).read_bytes()

    def assert_near(self, ours, cpu, most):
        """Each number of `ours` is within a share of the CPU's."""
        self.assertEqual(ours.keys(), cpu.keys())
        for name, number in ours.items():
            self.assertLessEqual(abs(number - cpu[name]), most * abs(cpu[name]), name)

    def test_outputs(self):
        for place in ("cpu", "cuda"):
            self.run_quench("run", "model.onnx", "--input", "x=images.npy", "-o", place, "--device", place)
        (shape, ours), (other, cpu) = (harness.read_npy(self.dir / place / "scores.npy") for place in ("cuda", "cpu"))
        self.assertEqual(shape, other)
        most = max(map(abs, cpu))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(ours, cpu)), 1e-5 * most)

    def test_scales_are_the_cpus(self):
        for observer in ("min_max", "percentile", "KL", "mse", "hist", "emd", "avg"):
            for place in ("cpu", "cuda"):
                self.run_quench("quantize", FASHION, "-o", f"{place}.onnx", *IMAGES, "--limit", "100", "--device", place,
                                "--activation-observer", observer)
            with self.subTest(observer):
                self.assert_near(self.scales("cuda.onnx"), self.scales("cpu.onnx"), 1e-3)

    def test_same_statistics_give_the_same_bytes(self):
        self.run_quench("calibrate", FASHION, "-o", "gpu.stats", *IMAGES, "--limit", "100", *GPU)
        for place in ("cpu", "cuda"):
            self.run_quench("quantize", FASHION, "-o", f"{place}.onnx", "--stats", "gpu.stats", "--device", place)
        self.assertEqual(self.bytes_of("cuda.onnx"), self.bytes_of("cpu.onnx"))

    def test_batches_change_nothing_that_counts(self):
        for batch in ("1", "64"):
            self.run_quench("quantize", FASHION, "-o", f"{batch}.onnx", *IMAGES, "--limit", "100", *GPU,
                            "--batch", batch, "--activation-observer", "hist")
        self.assert_near(self.scales("1.onnx"), self.scales("64.onnx"), 1e-3)

    def test_scores(self):
        cpu_score = self.run_json("eval", FASHION, *IMAGES, *LABELS, "--limit", "500")
        for precision in ("float", "tf32"):
            score = self.run_json("eval", FASHION, *IMAGES, *LABELS, "--limit", "500", *GPU, "--precision", precision)
            self.assertAlmostEqual(score["top1"], cpu_score["top1"], delta=0.2)
        half = self.run_json("eval", FASHION, *IMAGES, *LABELS, "--limit", "500", *GPU, "--precision", "half")
        self.assertAlmostEqual(half["top1"], cpu_score["top1"], delta=0.5)

    def test_scores_of_the_quantised_model(self):
        self.run_quench("quantize", FASHION, "-o", "int8.onnx", *IMAGES, "--limit", "100")
        for precision in ("float", "half"):
            scores = [self.run_json("eval", "int8.onnx", *IMAGES, *LABELS, "--limit", "500", *words)["top1"]
                      for words in ((*GPU, "--precision", precision), ())]
            self.assertAlmostEqual(*scores, delta=0.6)

    def test_sensitivity(self):
        ranked = []
        for place in ("cuda", "cpu"):
            report = self.run_json("analyze", "sensitivity", "model.onnx", "--data", "images.npy", "--device", place,
                                   "-o", f"sensitivity_{place}")
            ranked.append({layer["layer"]: layer["metric"] for layer in report["layers"]})
        self.assertEqual(*map(list, ranked))
        self.assert_near(*ranked, 1e-3)

    def test_target(self):
        report = self.run_json("quantize", FASHION, "-o", "target.onnx", *IMAGES, "--limit", "60", *GPU,
                               "--target-metric", "sqnr", "--at-least", "30")
        self.assertGreaterEqual(report["value"], 30)

    def test_training_and_reconstruction(self):
        scores = {}
        for name, verb, words in (("post", "quantize", ()), ("learned", "quantize", ("--reconstruct", *GPU)),
                                  ("trained", "train", ("--epochs", "2", *GPU))):
            self.run_quench(verb, FASHION, "-o", f"{name}.onnx", *IMAGES, "--limit", "200", "--weight-bits", "3", *words)
            report = self.run_json("eval", f"{name}.onnx", *IMAGES, "--limit", "500", "--reference", FASHION,
                                   "--metric", "sqnr")
            scores[name] = report["sqnr"]
        self.assertGreater(scores["learned"], scores["post"])
        self.assertGreater(scores["trained"], scores["post"])

    def test_half_is_not_for_training(self):
        error = self.run_quench("train", "model.onnx", "-o", "half.onnx", "--data", "images.npy", *GPU, "--precision",
                                "half", expect=2).stderr
        self.assertIn("half", error)

    def test_processes_share_a_gpu(self):
        """Two processes count what one does, and train together."""
        words = (FASHION, *IMAGES, "--limit", "100", "--device", "cuda:0")
        self.run_quench("calibrate", *words, "-o", "one.stats")
        self.run_quench("launch", "-n", "2", "calibrate", *words, "-o", "two.stats")
        for name in ("one", "two"):
            self.run_quench("quantize", FASHION, "-o", f"{name}.onnx", "--stats", f"{name}.stats")
        self.assert_near(self.scales("two.onnx"), self.scales("one.onnx"), 1e-3)
        self.run_quench("launch", "-n", "2", "train", *words, "-o", "both.onnx", "--steps", "4")

    def test_a_gpu_that_is_not_there(self):
        error = self.run_quench("run", "model.onnx", "--input", "x=x.npy", "-o", "far", "--device", "cuda:99",
                                expect=2).stderr
        self.assertIn("cuda:99", error)

    def test_batches_too_large_are_halved(self):
        """256 MB a sample: no GPU has room for 1,000 of them at once."""
        harness.write_npy(self.dir / "many.npy", "<f4", (1000, 1, 2, 2), [float(i % 7) for i in range(4000)])
        told = self.run_quench("eval", "large_means.onnx", "--data", "many.npy", "--reference", "means.onnx", "--metric",
                               "sqnr", "--batch", "1000", "--json", *GPU)
        self.assertIn("is too small for 1000 samples: they run in parts of", told.stderr)
        self.assertGreater(json.loads(told.stdout)["sqnr"], 90)

    def test_one_sample_too_large(self):
        harness.write_npy(self.dir / "four.npy", "<f4", (1, 1, 2, 2), [1.0, 2.0, 3.0, 4.0])
        error = self.run_quench("run", "endless_means.onnx", "--input", "x=four.npy", "-o", "never", *GPU,
                                expect=4).stderr
        self.assertIn("memory", error)


if __name__ == "__main__":
    done = unittest.main(exit=False).result
    sys.exit(77 if done.wasSuccessful() and done.skipped else not done.wasSuccessful())
