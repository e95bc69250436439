# SPDX-License-Identifier: Apache-2.0
"""quench analyze sensitivity: what it writes, how it resumes, and what it does about bad input."""
import json
import os
import re
import signal
import subprocess
import time
import unittest

import harness


class SensitivityTest(harness.CliTest):
    def analyze(self, *words, **options):
        return self.run_quench("analyze", "sensitivity", "model.onnx", *words, **options)

    def analyze_json(self, folder, *words):
        return json.loads(self.analyze("--data", "images.npy", "-o", folder, "--json", *words).stdout)

    def test_ranking_is_written_worst_first(self):
        result = self.analyze_json("plain")
        self.assertEqual(sorted(layer["layer"] for layer in result["layers"]),
                         ["conv_node", "gemm_node"])
        values = [layer["metric"] for layer in result["layers"]]
        self.assertEqual(values, sorted(values))
        lines = (self.dir / "plain" / "analysis.txt").read_text().splitlines()
        self.assertEqual(len(lines), 2)
        match = re.fullmatch(r"quant layer name: (\S+), eval metric: (\S+)", lines[0])
        self.assertEqual(match[1], result["layers"][0]["layer"])
        self.assertAlmostEqual(float(match[2]), values[0])

    def test_ways_agree(self):
        exact = self.analyze_json("exact")["layers"]
        for flag in ("--whole-runs", "--quick"):
            other = self.analyze_json("other", flag)["layers"]
            self.assertEqual([layer["layer"] for layer in other],
                             [layer["layer"] for layer in exact], flag)
            if flag == "--whole-runs":
                for one, two in zip(exact, other):
                    self.assertAlmostEqual(one["metric"], two["metric"], 2)

    def test_reverse(self):
        result = self.analyze_json("reverse", "--reverse")
        values = [layer["metric"] for layer in result["layers"]]
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertGreaterEqual(values[0], result["quantized"])
        text = (self.dir / "reverse" / "analysis.txt").read_text()
        self.assertTrue(text.startswith("without layer name: "))

    def test_labels(self):
        result = self.analyze_json("labels", "--labels", "labels.npy", "--metric", "top1")
        own = self.run_json("eval", "model.onnx", "--data", "images.npy", "--labels", "labels.npy",
                            "--metric", "top1")
        self.assertAlmostEqual(result["float"], own["top1"])

    def test_text(self):
        text = self.analyze("--data", "images.npy", "-o", "text").stdout
        self.assertRegex(text, r"conv_node +Conv +\d+\.\d{4}")
        self.assertIn("text/analysis.txt", text)

    def test_fixed_batch(self):
        result = self.run_json("analyze", "sensitivity", "fixed.onnx", "--data", "images.npy", "-o",
                               "fixed")
        self.assertEqual(result["samples"], harness.IMAGES)
        self.assertEqual(len(result["layers"]), 2)

    # A command of the user's own.

    def test_metric_command(self):
        result = self.analyze_json("command", "--metric-command",
                                   "test -s {model} && echo score: 3.5")
        self.assertEqual([layer["metric"] for layer in result["layers"]], [3.5, 3.5])
        self.assertEqual(list((self.dir / "command").glob("*.onnx")), [])

    def test_metric_command_that_fails(self):
        error = self.analyze("--data", "images.npy", "-o", "bad", "--metric-command",
                             "cat {model} > /dev/null; exit 7", expect=3).stderr
        self.assertIn("exit status 7", error)

    def test_metric_command_without_number(self):
        error = self.analyze("--data", "images.npy", "-o", "bad", "--metric-command",
                             "echo {model} is fine", expect=3).stderr
        self.assertIn("printed no number", error)

    def test_metric_command_without_model(self):
        error = self.analyze("--data", "images.npy", "-o", "bad", "--metric-command", "echo 3",
                             expect=2).stderr
        self.assertIn("{model}", error)

    # Resuming.

    def interrupted(self, folder):
        """A run whose metric command stops at the second layer."""
        self.analyze("--data", "images.npy", "-o", folder, "--metric-command",
                     "test -e {model}.seen && exit 1; touch {model}.seen; echo 1", expect=3)
        (self.dir / folder / "metric_model.onnx.seen").unlink()

    def test_resume_goes_on(self):
        self.interrupted("resume")
        command = "test -e {model}.seen && exit 1; touch {model}.seen; echo 1"
        # The second layer alone is left; then float and quantised are scored, which fails.
        self.analyze("--data", "images.npy", "-o", "resume", "--resume", "--metric-command", command,
                     expect=3)
        saved = json.loads((self.dir / "resume" / "analysis_checkpoint.json").read_text())
        self.assertEqual(len(saved["layers"]), 2)

    def killed(self, folder, command):
        """A run that SIGKILL ends while the second layer is being judged."""
        words = [harness.PROGRAM, "analyze", "sensitivity", "model.onnx", "--data", "images.npy",
                 "-o", folder, "--metric-command", command]
        checkpoint = self.dir / folder / "analysis_checkpoint.json"
        with subprocess.Popen(words, cwd=self.dir, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, start_new_session=True) as process:
            deadline = time.monotonic() + 60
            while not checkpoint.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.assertEqual(process.returncode, -signal.SIGKILL)
        return json.loads(checkpoint.read_text())

    def test_killed_run_is_resumed(self):
        # The first call answers at once; the second stays until it is killed. Each counts itself.
        command = ("test -s {model} && echo x >> calls.txt; test -e go && echo 4 && exit; "
                   "test $(wc -l < calls.txt) -eq 1 && echo 5 && exit; sleep 60; echo 4")
        saved = self.killed("killed", command)
        self.assertEqual(len(saved["layers"]), 1)
        self.assertFalse((self.dir / "killed" / "analysis.txt").exists())
        changes = {"model": ["reference.onnx", "--data", "images.npy"],
                   "data": ["model.onnx", "--data", "images.npy", "--limit", "15"],
                   "setting": ["model.onnx", "--data", "images.npy", "--weight-bits", "4"]}
        (self.dir / "go").touch()
        for name, words in changes.items():
            error = self.run_quench("analyze", "sensitivity", *words, "-o", "killed", "--resume",
                                    "--metric-command", command, expect=3).stderr
            self.assertIn(f"another {name}", error)
        (self.dir / "calls.txt").unlink()
        result = self.analyze_json("killed", "--resume", "--metric-command", command)
        self.assertEqual(result["resumed"], 1)
        self.assertEqual(sorted(layer["metric"] for layer in result["layers"]), [4, 5])
        # One layer was left, then the float and the quantised model.
        self.assertEqual(len((self.dir / "calls.txt").read_text().splitlines()), 3)
        self.assertEqual(len((self.dir / "killed/analysis.txt").read_text().splitlines()), 2)

    def test_resume_takes_scores_over(self):
        first = self.analyze_json("again")
        second = self.analyze_json("again", "--resume")
        self.assertEqual(second["resumed"], 2)
        self.assertEqual([layer["metric"] for layer in second["layers"]],
                         [layer["metric"] for layer in first["layers"]])
        self.assertEqual(self.analyze_json("again")["resumed"], 0)

    def test_resume_notices_what_changed(self):
        self.analyze_json("changed")
        changes = {"model": ["reference.onnx", "--data", "images.npy"],
                   "data": ["model.onnx", "--data", "images.npy", "--limit", "15"],
                   "setting": ["model.onnx", "--data", "images.npy", "--metric", "cosine"]}
        for name, words in changes.items():
            error = self.run_quench("analyze", "sensitivity", *words, "-o", "changed", "--resume",
                                    expect=3).stderr
            self.assertIn(f"another {name}", error)

    def test_damaged_checkpoint(self):
        (self.dir / "damaged").mkdir()
        for text in ("no json", "{}", '{"fingerprint": 3}'):
            (self.dir / "damaged" / "analysis_checkpoint.json").write_text(text)
            error = self.analyze("--data", "images.npy", "-o", "damaged", "--resume",
                                 expect=3).stderr
            self.assertIn("analysis_checkpoint.json", error)

    def test_branches(self):
        """Layers inside the branches of an If stay in float; those around it are ranked."""
        result = self.run_json("analyze", "sensitivity", "branch.onnx", "--data", "images.npy",
                               "-o", "branches", "--report", "branches.html")
        self.assertEqual(sorted(layer["layer"] for layer in result["layers"]),
                         ["first_conv", "last_conv"])

    # Bad input.

    def test_statistics_of_the_model_itself(self):
        for model in ("model.onnx", "residual.onnx"):
            self.run_quench("calibrate", model, "-o", "own.stats", "--data", "images.npy")
            words = ("analyze", "sensitivity", model, "-o", "own", "--data", "images.npy")
            first, second = (self.run_json(*words, *more) for more in ((), ("--stats", "own.stats")))
            # Statistics are taken to the letter: no observer is chosen and no channel equalised.
            self.assertEqual({layer["layer"] for layer in first["layers"]},
                             {layer["layer"] for layer in second["layers"]})
            self.assertAlmostEqual(first["quantized"], second["quantized"], delta=3)

    def test_statistics_of_another_model_are_refused(self):
        self.run_quench("calibrate", "reference.onnx", "-o", "other.stats", "--data", "images.npy")
        for verb in (("sensitivity",), ("target", "--at-least", "10")):
            error = self.run_quench("analyze", verb[0], "model.onnx", *verb[1:], "-o", "none",
                                    "--data", "images.npy", "--stats", "other.stats", expect=3)
            self.assertIn("other.stats holds the statistics of another model", error.stderr)

    def test_no_evaluation_data(self):
        self.run_quench("calibrate", "model.onnx", "-o", "kept.stats", "--data", "images.npy")
        error = self.analyze("--stats", "kept.stats", "--metric", "top1", "-o", "none",
                             expect=2).stderr
        self.assertIn("the metric 'top1' needs evaluation data", error)

    def test_no_data(self):
        self.assertIn("--data", self.analyze("-o", "none", expect=2).stderr)

    def test_no_labels(self):
        error = self.analyze("--data", "images.npy", "--metric", "top1", "-o", "none",
                             expect=3).stderr
        self.assertIn("needs labels", error)

    def test_unknown_metric(self):
        error = self.analyze("--data", "images.npy", "--metric", "cosin", "-o", "none",
                             expect=2).stderr
        self.assertIn("did you mean 'cosine'?", error)

    def test_what_is_refused_leaves_no_folder(self):
        data = ("--data", "images.npy")
        for kind, words, code in (
                ("sensitivity", ("nowhere.onnx", *data), 3),
                ("sensitivity", ("model.onnx", *data, "--metric", "unheard"), 2),
                ("sensitivity", ("model.onnx", "--data", "nowhere.npy"), 3),
                ("statistics", ("model.onnx", "--data", "nowhere.npy"), 3),
                ("target", ("model.onnx", "--data", "nowhere.npy", "--at-least", "3"), 3)):
            self.run_quench("analyze", kind, *words, "-o", "deep/refused", expect=code)
            self.assertFalse((self.dir / "deep").exists(), (kind, words))

    def test_folder_that_cannot_be_made(self):
        error = self.analyze("--data", "images.npy", "-o", "model.onnx/deep", expect=3).stderr
        self.assertIn("model.onnx/deep", error)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_locked_folder(self):
        (self.dir / "locked").mkdir()
        (self.dir / "locked").chmod(0o500)
        error = self.analyze("--data", "images.npy", "-o", "locked", expect=3).stderr
        self.assertIn("locked", error)


if __name__ == "__main__":
    unittest.main()
