# SPDX-License-Identifier: Apache-2.0
"""quench quantize: what it writes, what it says, and what it does about bad input."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import time
import unittest

import harness

SIZE = 3 * 8 * 8
SOURCE = pathlib.Path(__file__).resolve().parents[2]


class QuantizeTest(harness.CliTest):
    def quantize(self, out, *words, **options):
        return self.run_quench("quantize", "model.onnx", "-o", out, *words, **options)

    def bytes_of(self, name, *words):
        self.quantize(name, "--data", "images.npy", *words)
        return (self.dir / name).read_bytes()

    def write_data(self, name, count, values):
        harness.write_npy(self.dir / name, "<f4", (count, 3, 8, 8), values)

    def check_refused(self, mention, *words, expect=3, model="model.onnx"):
        """The command fails with one sentence and leaves the file that was there as it was."""
        out = self.dir / "kept.onnx"
        out.write_bytes(b"what was there before")
        error = self.run_quench("quantize", model, "-o", out.name, *words, expect=expect).stderr
        self.assertIn(mention, error)
        self.assertEqual(out.read_bytes(), b"what was there before")
        self.assertEqual(list(self.dir.glob("kept.onnx?*")), [])

    # What it writes and says.

    def test_reports_beside_the_model(self):
        self.run_quench("quantize", "model.onnx", "-o", "r.onnx", "--data", "images.npy", "--report",
                        "r.html", "--debug-info", "new/folder")
        self.assertIn("gemm_node", (self.dir / "r.html").read_text(encoding="utf-8"))
        for name in ("output_summary.csv", "round_0.csv", "quant_param.csv"):
            lines = (self.dir / "new/folder" / name).read_text(encoding="utf-8").splitlines()
            self.assertGreater(len(lines), 1, name)

    def test_stated_metric(self):
        words = ["quantize", "model.onnx", "--data", "images.npy", "--target-metric", "cosine"]
        self.run_quench(*words, "-o", "met.onnx", "--at-least", "0.5")
        self.assertTrue((self.dir / "met.onnx").exists())
        found = self.run_json(*words, "-o", "met.onnx", "--at-least", "0.5", "--report-json", "met.json")
        self.assertGreaterEqual(found["value"], 0.5)
        self.assertEqual(found, json.loads((self.dir / "met.json").read_text()))
        error = self.run_quench(*words, "-o", "missed.onnx", "--at-least", "1.5", expect=1).stderr
        self.assertIn("cannot be met", error)

    def test_model_is_smaller_and_near_the_float_one(self):
        result = self.run_json("quantize", "model.onnx", "-o", "int8.onnx", "--data", "images.npy")
        self.assertEqual(result["calibration_samples"], 16)
        self.assertEqual(result["validation_samples"], 4)
        self.assertGreaterEqual(result["integer_nodes"], 2)
        self.assertEqual(result["bytes_before"], (self.dir / "model.onnx").stat().st_size)
        self.assertEqual(result["bytes_after"], (self.dir / "int8.onnx").stat().st_size)
        self.assertEqual(result["outputs"][0]["name"], "scores")
        self.assertGreater(result["outputs"][0]["cosine"], 0.999)
        self.assertGreater(result["seconds"], 0)
        self.assertGreater(result["peak_memory_mb"], 1)
        self.assertEqual(result["warnings"], [])
        layers = {layer["node"]: layer for layer in result["layers"]}
        self.assertGreater(layers["gemm_node"]["own_sqnr"], 20)
        weights = self.run_json("inspect", "int8.onnx")["weights"]
        self.assertIn("int8", str(weights))
        near = self.run_json("eval", "int8.onnx", "--data", "images.npy", "--reference",
                             "model.onnx")
        self.assertGreater(near["cosine"], 0.999)

    def test_gptq_rounds_layers_of_full_quantisation_too(self):
        words = ("quantize", "model.onnx", "-o", "g.onnx", "--data", "images.npy")
        few = (*words, "--weight-bits", "3", "--no-bias-correction")
        better = self.run_json(*few)
        self.assertGreater(better["gptq_layers"], 0)
        self.assertEqual(self.run_json(*words)["gptq_layers"], 0)  # 8 bits: only where asked for

    def test_one_model_holds_all_three_types(self):
        result = self.run_json("quantize", "model.onnx", "-o", "mixed.onnx", "--data", "images.npy",
                               "--rule", "layer:gemm_node:type=weight")
        self.assertEqual([each["node"] for each in result["weights"]], ["gemm_node"])
        reasons = {each["node"]: each["reason"] for each in result["float_layers"]}
        self.assertIn("a rule stores its weight alone", reasons["gemm_node"])
        self.assertGreater(result["integer_nodes"], 0)
        self.assertGreater(result["outputs"][0]["sqnr"], 30)

    def test_text(self):
        text = self.quantize("text.onnx", "--data", "images.npy").stdout
        for line in (r"nodes on integers +\d+", r"size before, bytes +[\d,]+",
                     r"size after, bytes +[\d,]+", r"samples calibrated with +16",
                     r"seconds +\d+\.\d+", r"most memory, MB +\d+",
                     r"layers that cost the outputs most +operator", r"gemm_node +Gemm +\d+",
                     r"scores +agreement +\d+", r"scores +cosine +\d\.\d+",
                     r"scores +sqnr +\d+", r"on 4 samples that calibration did not see"):
            self.assertRegex(text, line)

    def test_same_bytes_every_time(self):
        first = self.bytes_of("a.onnx")
        self.assertEqual(self.bytes_of("b.onnx"), first)
        self.assertEqual(self.bytes_of("c.onnx", "--threads", "1"), first)
        self.assertEqual(self.bytes_of("d.onnx", "--threads", "2"), first)

    def test_corrected_biases_do_not_depend_on_threads(self):
        data = SOURCE / "examples/data"
        written = []
        for threads in ("1", "2"):
            self.run_quench("quantize", data / "fashion.onnx", "-o", "fashion.onnx", "--threads",
                            threads, "--bias-correction", "full", "--limit", "60", "--mean", "72.9",
                            "--std", "90", "--data", data / "fashion-test-images-idx3-ubyte.gz")
            written.append((self.dir / "fashion.onnx").read_bytes())
        self.assertEqual(*written)

    def test_batch_does_not_matter(self):
        words = ["--no-bias-correction", "--no-metadata"]
        first = self.bytes_of("a.onnx", *words)
        self.assertEqual(self.bytes_of("b.onnx", *words, "--batch", "1"), first)
        self.assertEqual(self.bytes_of("c.onnx", *words, "--batch", "5"), first)

    def test_statistics_stand_in_for_data(self):
        self.run_quench("calibrate", "model.onnx", "-o", "model.stats", "--data", "images.npy")
        words = ["--activation-observer", "mse", "--no-metadata"]
        self.quantize("by_stats.onnx", "--stats", "model.stats", *words)
        self.assertEqual((self.dir / "by_stats.onnx").read_bytes(),
                         self.bytes_of("by_data.onnx", "--no-bias-correction", "--equalize",
                                       "never", *words))
        self.quantize("unnamed.onnx", "--stats", "model.stats", "--no-metadata")
        self.assertEqual((self.dir / "unnamed.onnx").read_bytes(),
                         (self.dir / "by_stats.onnx").read_bytes())

    def test_every_observer(self):
        names = [row["name"] for row in self.run_json("list", "observers")["observers"]]
        self.assertIn("KL", names)
        for name in names:
            result = self.run_json("quantize", "model.onnx", "-o", "o.onnx", "--data",
                                   "images.npy", "--activation-observer", name)
            self.assertGreater(result["outputs"][0]["cosine"], 0.99, name)

    def test_samples_choose_the_observer(self):
        words = ["quantize", "model.onnx", "-o", "o.onnx", "--data", "images.npy",
                 "--no-bias-correction"]
        found = {}
        for name in ("mse", "avg", "min_max"):
            result = self.run_json(*words, "--activation-observer", name)
            self.assertEqual(result["activation_observer"], "")
            self.assertEqual(result["observer_trials"], [])
            self.assertEqual(set(result["value_observers"].values()), {name})
            found[name] = result["outputs"][0]["sqnr"]
        result = self.run_json(*words)
        self.assertGreaterEqual(result["observer_samples"], 16)
        chosen, = (trial for trial in result["observer_trials"] if trial["chosen"])
        self.assertEqual(result["activation_observer"], chosen["observer"])
        best = max(trial["outputs"][0]["sqnr"] for trial in result["observer_trials"])
        self.assertGreaterEqual(chosen["outputs"][0]["sqnr"], best - 0.25)
        self.assertGreater(result["outputs"][0]["sqnr"], found["min_max"] - 1)
        self.assertLessEqual(set(result["value_observers"].values()),
                             {chosen["observer"], "min_max"})
        text = self.run_quench(*words).stdout
        self.assertRegex(text, r"ranges of activations by +" + chosen["observer"])

    def test_report_has_the_chosen_observers(self):
        for words in ([], ["--activation-observer", "KL"]):
            result = self.run_json("quantize", "model.onnx", "-o", "o.onnx", "--data",
                                   "images.npy", "--report", "r.html", *words)
            page = (self.dir / "r.html").read_text(encoding="utf-8")
            for observer in set(result["value_observers"].values()):
                self.assertIn(observer, page)

    def test_every_target(self):
        for row in self.run_json("list", "targets")["targets"]:
            result = self.run_json("quantize", "model.onnx", "-o", "t.onnx", "--data",
                                   "images.npy", "--target", row["name"])
            self.assertGreater(result["outputs"][0]["cosine"], 0.99, row["name"])

    def test_fixed_batch(self):
        result = self.run_json("quantize", "fixed.onnx", "-o", "fixed8.onnx", "--data",
                               "images.npy")
        self.assertGreater(result["integer_nodes"], 0)
        near = self.run_json("eval", "fixed8.onnx", "--data", "images.npy", "--reference",
                             "fixed.onnx")
        self.assertGreater(near["cosine"], 0.999)

    def test_skipped_node_stays_in_float(self):
        result = self.run_json("quantize", "model.onnx", "-o", "skip.onnx", "--data",
                               "images.npy", "--skip-node", "gemm_node")
        self.assertIn("gemm_node", str(result["float_layers"]))

    # Data that look wrong.

    def test_nan_is_reported_by_name(self):
        values = [0.01 * (i % 100) for i in range(20 * SIZE)]
        values[5] = float("nan")
        values[700] = float("inf")
        self.write_data("nan.npy", 20, values)
        error = self.quantize("nan.onnx", "--data", "nan.npy").stderr
        self.assertRegex(error, r"warning.*'x' held 1 NaN and 1 infinite values")

    def test_constant_data_are_reported(self):
        self.write_data("same.npy", 20, [0.5] * (20 * SIZE))
        error = self.quantize("same.onnx", "--data", "same.npy").stderr
        self.assertRegex(error, r"warning.*'x' was 0\.5 everywhere")

    def test_few_samples_are_reported(self):
        error = self.quantize("few.onnx", "--data", "images.npy", "--limit", "2").stderr
        self.assertRegex(error, r"warning.*only 2 samples")

    def test_unseen_inputs_are_reported(self):
        self.write_data("far.npy", 20, [((i * 37) % 100) / 100 for i in range(16 * SIZE)]
                        + [5.0] * (4 * SIZE))
        error = self.quantize("far.onnx", "--data", "far.npy").stderr
        self.assertRegex(error, r"warning.*input 'x' reaches from 5 to 5.*--limit")

    def test_clipping_is_reported(self):
        values = [0.01 * ((i * 37) % 100) for i in range(20 * SIZE)]
        self.write_data("even.npy", 20, values)
        error = self.quantize("clip.onnx", "--data", "even.npy", "--activation-observer", "hist",
                              "--hist-percent", "0.6").stderr
        self.assertRegex(error, r"warning.*clip much of.*%.*--activation-observer min_max")

    def test_poor_layers_are_reported(self):
        error = self.quantize("poor.onnx", "--data", "images.npy", "--target", "generic",
                              "--weight-bits", "2", "--activation-bits", "3").stderr
        self.assertRegex(error, r"warning.*outputs have an SQNR of [\d.]+ dB; these layers cost.*dB\).*--skip-node gemm_node")

    def test_unlike_data_are_reported(self):
        right = self.quantize("bn.onnx", "--data", "images.npy").stderr
        self.assertNotIn("unlike", right)
        self.write_data("bright.npy", 20, [128.0 + i % 64 for i in range(20 * SIZE)])
        error = self.run_quench("quantize", "norm.onnx", "-o", "bn.onnx", "--data",
                                "bright.npy").stderr
        self.assertRegex(error, r"warning.*look unlike those of training.*--mean.*--color")
        quiet = self.run_quench("quantize", "norm.onnx", "-o", "bn.onnx", "--data",
                                "images.npy").stderr
        self.assertNotIn("unlike", quiet)

    def test_dead_channels_are_reported(self):
        error = self.run_quench("quantize", "norm.onnx", "-o", "dead.onnx", "--data",
                                "images.npy").stderr
        self.assertRegex(error, r"warning.*weights are all zero.*1 of Conv node 'conv_node'")

    # Data that are wrong.

    def test_no_data(self):
        self.check_refused("--data", expect=2)

    def test_missing_data(self):
        self.check_refused("nowhere", "--data", "nowhere")

    def test_empty_folder(self):
        (self.dir / "empty").mkdir(exist_ok=True)
        self.check_refused("empty holds no samples", "--data", "empty")

    def test_wrong_size(self):
        harness.write_npy(self.dir / "wide.npy", "<f4", (2, 3, 8, 9), [0] * 432)
        self.check_refused("wide.npy", "--data", "wide.npy")

    def test_truncated_data(self):
        (self.dir / "cut.npy").write_bytes((self.dir / "images.npy").read_bytes()[:-1])
        self.check_refused("cut.npy", "--data", "cut.npy")

    def test_unreadable_image(self):
        (self.dir / "pictures").mkdir(exist_ok=True)
        (self.dir / "pictures" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no picture")
        self.check_refused("broken.jpg", "--data", "pictures", "--resize", "8,8")

    def test_unknown_names(self):
        for flag, name, near, code in (("--activation-observer", "min_maxx", "min_max", 2),
                                       ("--weight-observer", "channel_wise_mze",
                                        "channel_wise_mse", 2),
                                       ("--target", "onnxruntim", "onnxruntime", 2),
                                       ("--skip-node", "gem_node", "gemm_node", 3),
                                       ("--op-types", "Cnv", "Conv", 3)):
            with self.subTest(flag):
                self.check_refused(f"did you mean '{near}'?", "--data", "images.npy", flag, name,
                                   expect=code)

    def test_bad_statistics(self):
        self.check_refused("nowhere.stats", "--stats", "nowhere.stats")
        self.check_refused("model.onnx", "--stats", "model.onnx")
        self.run_quench("calibrate", "model.onnx", "-o", "whole.stats", "--data", "images.npy")
        whole = (self.dir / "whole.stats").read_bytes()
        (self.dir / "cut.stats").write_bytes(whole[:len(whole) // 2])
        self.check_refused("cut.stats", "--stats", "cut.stats")

    def test_statistics_of_another_model(self):
        self.run_quench("calibrate", "model.onnx", "-o", "few.stats", "--data", "images.npy",
                        "--op-types", "Gemm")
        self.check_refused("calibrate this model again", "--stats", "few.stats")

    def test_nothing_to_quantise(self):
        self.write_data("any.npy", 4, [0.1] * (4 * SIZE))
        self.check_refused("odd.onnx", "--data", "any.npy", expect=4, model="odd.onnx")
        self.check_refused("no integer kernel", "--data", "any.npy", expect=4, model="odd.onnx")

    def test_output_that_cannot_be_written(self):
        for out in ("nowhere/out.onnx", "labels.npy/out.onnx"):
            error = self.quantize(out, "--data", "images.npy", expect=3).stderr
            self.assertIn(out, error)

    def test_full_disk(self):
        """Files may not grow beyond half of the result: as a disk that fills up while writing."""
        self.quantize("whole.onnx", "--data", "images.npy")
        half = (self.dir / "whole.onnx").stat().st_size // 2

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))

        out = self.dir / "kept.onnx"
        out.write_bytes(b"what was there before")
        error = self.quantize("kept.onnx", "--data", "images.npy", expect=3,
                              preexec_fn=limit).stderr
        self.assertIn("kept.onnx", error)
        self.assertEqual(out.read_bytes(), b"what was there before")
        self.assertEqual(list(self.dir.glob("kept.onnx?*")), [])

    def test_report_that_cannot_be_written(self):
        error = self.quantize("r.onnx", "--data", "images.npy", "--report-json", "/dev/full",
                              expect=3).stderr
        self.assertIn("/dev/full", error)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_locked_folder(self):
        (self.dir / "locked").mkdir()
        (self.dir / "locked").chmod(0o500)
        error = self.quantize("locked/out.onnx", "--data", "images.npy", expect=3).stderr
        self.assertIn("locked/out.onnx", error)

    def stop_in_the_middle(self, number):
        """Sends a signal while samples are read; how the program ended."""
        self.write_data("many.npy", 20000, [0.25, -1.5, 0.75] * (20000 * SIZE // 3))
        before = sorted(self.dir.iterdir())
        words = ["quantize", "model.onnx", "-o", "model8.onnx", "--data", "many.npy", "--batch",
                 "1", "--threads", "1"]
        process = subprocess.Popen([harness.PROGRAM, *words], cwd=self.dir,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.7)
        self.assertIsNone(process.poll(), "ended before the signal")
        process.send_signal(number)
        process.communicate(timeout=60)
        self.assertEqual(sorted(self.dir.iterdir()), before)
        return process.returncode

    def test_kill_leaves_nothing_behind(self):
        self.assertEqual(self.stop_in_the_middle(signal.SIGKILL), -signal.SIGKILL)
        (self.dir / "model8.onnx").write_bytes(b"what was there before")
        self.assertEqual(self.stop_in_the_middle(signal.SIGKILL), -signal.SIGKILL)
        self.assertEqual((self.dir / "model8.onnx").read_bytes(), b"what was there before")

    def test_interrupt_leaves_nothing_behind(self):
        self.assertEqual(self.stop_in_the_middle(signal.SIGINT), 130)


if __name__ == "__main__":
    unittest.main()
