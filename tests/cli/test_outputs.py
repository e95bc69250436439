# SPDX-License-Identifier: Apache-2.0
"""Where the program writes: never over what it reads, never half, never somewhere surprising."""
import os
import shutil
import stat
import subprocess
import time
import unittest

import harness

DATA = ("--data", "images.npy")


class OutputsTest(harness.CliTest):
    """Each test works on copies, so that a fault in one does not spoil the next."""

    def setUp(self):
        for name in ("model.onnx", "images.npy", "labels.npy"):
            shutil.copy(self.dir / name, self.dir / f"kept_{name}")

    def check_inputs(self):
        """No input has changed."""
        for name in ("model.onnx", "images.npy", "labels.npy"):
            self.assertEqual((self.dir / name).read_bytes(),
                             (self.dir / f"kept_{name}").read_bytes(), name)

    def refuse(self, *arguments, words, expect=2):
        """The program refuses at once, says why, and has changed nothing."""
        before = {path: path.stat().st_mtime_ns for path in self.dir.rglob("*.onnx")}
        error = self.run_quench(*arguments, expect=expect).stderr
        for word in words:
            self.assertIn(word, error)
        self.check_inputs()
        for path, time in before.items():
            self.assertEqual(path.stat().st_mtime_ns, time, path)
        self.assertEqual(list(self.dir.rglob("*.quench-*")), [])

    def external_model(self, name):
        """A model whose weights lie in `name`.data."""
        self.run_quench("pack", "model.onnx", "-o", "whole.qnch")
        self.run_quench("unpack", "whole.qnch", "-o", name, "--external")
        self.assertTrue((self.dir / f"{name}.data").exists())

    def test_the_input_is_not_overwritten(self):
        os.symlink("model.onnx", self.dir / "alias.onnx")
        self.addCleanup((self.dir / "alias.onnx").unlink)
        words = ("this run reads the model from there",)
        for out in ("model.onnx", "./model.onnx", "alias.onnx"):
            for kind in ("full", "weight", "dynamic"):
                self.refuse("quantize", "model.onnx", "-o", out, *DATA, "--type", kind,
                            words=words)
            self.refuse("convert", "--fmk=ONNX", "--modelFile=model.onnx", f"--outputFile={out}",
                        words=words)
        self.refuse("calibrate", "model.onnx", "-o", "model.onnx", *DATA, words=words)
        self.refuse("bench", "model.onnx", "--runs", "1", "--trace", "model.onnx", words=words)
        self.run_quench("pack", "model.onnx", "-o", "same.qnch")
        self.refuse("pack", "same.qnch", "-o", "same.qnch", words=words)

    def test_reports_go_nowhere_near_inputs(self):
        job = ("quantize", "model.onnx", "-o", "r.onnx", *DATA)
        for flag in ("--report", "--report-json"):
            self.refuse(*job, flag, "model.onnx", words=("reads the model",))
            self.refuse(*job, flag, "images.npy", words=("reads the samples",))
            self.refuse(*job, "--labels", "labels.npy", flag, "labels.npy",
                        words=("reads the labels",))
            self.refuse(*job, flag, "r.onnx", words=("the quantised model", "r.onnx"))
            config = self.dir / "c.cfg"
            config.write_text("[common_quant_param]\nquant_type=FULL_QUANT\nbit_num=8\n",
                              encoding="ascii")
            self.refuse(*job, "--config", "c.cfg", flag, "c.cfg", words=("reads the settings",))
        self.refuse(*job, "--report", "r.html", "--report-json", "./r.html",
                    words=("the HTML report", "writes the JSON report there"))
        self.refuse("analyze", "sensitivity", "model.onnx", "-o", "an", *DATA, "--report",
                    "model.onnx", words=("reads the model",))
        self.refuse("analyze", "target", "model.onnx", "-o", "an", *DATA, "--at-least", "1",
                    "--model-out", "model.onnx", words=("reads the model",))
        self.assertFalse((self.dir / "r.onnx").exists())

    def test_a_report_may_lie_in_the_folder_of_the_analysis(self):
        self.run_quench("analyze", "sensitivity", "model.onnx", "-o", "fresh", *DATA, "--report",
                        "fresh/report.html")
        self.assertTrue((self.dir / "fresh" / "report.html").exists())

    def test_results_of_a_run_do_not_replace_its_inputs(self):
        (self.dir / "out").mkdir()
        shutil.copy(self.dir / "x.npy", self.dir / "out" / "scores.npy")
        self.refuse("run", "model.onnx", "--input", "x=out/scores.npy", "-o", "out",
                    words=("the value 'scores'", "reads the samples"))

    def test_unknown_extensions_are_refused_before_the_work(self):
        for name in ("x.pb", "a.ms", "plain", "m.onnx.bak"):
            words = (name, ".onnx or .qnch")
            self.refuse("quantize", "model.onnx", "-o", name, *DATA, words=words)
            self.refuse("quantize", "model.onnx", "-o", name, "--type", "weight", words=words)
            self.refuse("analyze", "target", "model.onnx", "-o", "an", *DATA, "--at-least", "1",
                        "--model-out", name, words=words)
            self.assertFalse((self.dir / name).exists())
        self.refuse("convert", "--fmk=ONNX", "--modelFile=model.onnx", "--outputFile=a.ms",
                    words=("ends in .ms", "ONNX is written"))

    def test_convert_adds_its_suffix_as_converter_lite_does(self):
        for given, made in (("c1", "c1.onnx"), ("c_v1.5", "c_v1.5.onnx"), ("c2.onnx", "c2.onnx"),
                            ("c3.qnch", "c3.qnch")):
            self.run_quench("convert", "--fmk=ONNX", "--modelFile=model.onnx",
                            f"--outputFile={given}")
            self.assertTrue((self.dir / made).exists(), made)

    def test_devices_and_fifos_are_not_replaced(self):
        os.mkfifo(self.dir / "fifo.onnx")
        self.addCleanup((self.dir / "fifo.onnx").unlink)
        self.refuse("quantize", "model.onnx", "-o", "fifo.onnx", *DATA, words=("a FIFO",), expect=3)
        self.assertTrue(stat.S_ISFIFO((self.dir / "fifo.onnx").stat().st_mode))
        try:
            os.mknod(self.dir / "null.onnx", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            self.skipTest("device nodes need root")
        self.addCleanup((self.dir / "null.onnx").unlink)
        for flags in (("-o", "null.onnx"), ("-o", "n.onnx", "--report-json", "null.onnx"),
                      ("-o", "n.onnx", "--report", "null.onnx")):
            self.refuse("quantize", "model.onnx", *flags, *DATA, words=("a device",), expect=3)
        self.refuse("calibrate", "model.onnx", "-o", "null.onnx", *DATA, words=("a device",),
                    expect=3)
        self.assertTrue(stat.S_ISCHR((self.dir / "null.onnx").stat().st_mode))

    def test_links_and_modes_are_kept(self):
        (self.dir / "store").mkdir()
        os.symlink("store/real.onnx", self.dir / "link.onnx")
        for _ in range(2):
            self.run_quench("quantize", "model.onnx", "-o", "link.onnx", "--type", "weight")
            self.assertTrue((self.dir / "link.onnx").is_symlink())
            (self.dir / "store" / "real.onnx").chmod(0o600)
        self.assertEqual((self.dir / "store" / "real.onnx").stat().st_mode & 0o777, 0o600)
        self.run_quench("inspect", "link.onnx")

    def test_a_failing_table_leaves_the_old_result(self):
        (self.dir / "old.onnx").write_bytes(b"old")
        (self.dir / "tables" / "quant_param.csv").mkdir(parents=True)
        for kind in ("full", "weight"):
            self.run_quench("quantize", "model.onnx", "-o", "old.onnx", *DATA, "--type", kind,
                            "--debug-info", "tables", expect=3)
            self.assertEqual((self.dir / "old.onnx").read_bytes(), b"old")
            self.assertEqual([path.name for path in (self.dir / "tables").iterdir()],
                             ["quant_param.csv"])
        (self.dir / "not_a_folder").write_text("text", encoding="ascii")
        self.refuse("quantize", "model.onnx", "-o", "old.onnx", *DATA, "--debug-info",
                    "not_a_folder", words=("not_a_folder",), expect=3)

    def test_a_missed_target_leaves_the_old_result(self):
        (self.dir / "missed.onnx").write_bytes(b"old")
        self.run_quench("quantize", "model.onnx", "-o", "missed.onnx", *DATA, "--target-metric",
                        "agreement", "--at-least", "101", expect=1)
        self.assertEqual((self.dir / "missed.onnx").read_bytes(), b"old")

    def test_weights_of_the_input_survive(self):
        self.external_model("b.onnx")
        os.rename(self.dir / "b.onnx", self.dir / "a.onnx")  # a.onnx reads b.onnx.data
        (self.dir / "b.onnx.data.old").write_bytes(b"a user's own")
        before = (self.dir / "b.onnx.data").read_bytes()
        self.run_quench("unpack", "whole.qnch", "-o", "b.onnx", "--external")
        self.run_quench("quantize", "a.onnx", "-o", "b.onnx", "--type", "weight")
        self.run_quench("quantize", "a.onnx", "-o", "b.onnx", *DATA)
        self.assertEqual((self.dir / "b.onnx.data").read_bytes(), before)
        self.assertEqual((self.dir / "b.onnx.data.old").read_bytes(), b"a user's own")
        self.run_quench("run", "a.onnx", "--input", "x=x.npy")
        self.run_quench("run", "b.onnx", "--input", "x=x.npy")

    def test_models_that_share_weights(self):
        self.external_model("s.onnx")
        shutil.copy(self.dir / "s.onnx", self.dir / "t.onnx")
        self.refuse("quantize", "t.onnx", "-o", "s.onnx", *DATA,
                    words=("s.onnx.data", "reads the weights of the model"))


class OddFilesTest(harness.CliTest):
    """Files that would hang or kill a careless reader."""

    def fifo(self, name):
        os.mkfifo(self.dir / name)
        self.addCleanup((self.dir / name).unlink)
        return name

    def refuse(self, *arguments, name):
        error = self.run_quench(*arguments, expect=3).stderr
        self.assertIn(name, error)
        self.assertIn("regular file", error)

    def test_fifos_are_refused_at_once(self):
        job = ("quantize", "model.onnx", "-o", "o.onnx")
        self.refuse("inspect", self.fifo("f.onnx"), name="f.onnx")
        self.refuse("quantize", "f.onnx", "-o", "o.onnx", *DATA, name="f.onnx")
        self.refuse(*job, *DATA, "--config", self.fifo("f.cfg"), name="f.cfg")
        self.refuse(*job, *DATA, "--data-config", "f.cfg", name="f.cfg")
        self.refuse(*job, *DATA, "--settings", "f.cfg", name="f.cfg")
        self.refuse(*job, "--stats", self.fifo("f.stats"), name="f.stats")
        self.refuse(*job, "--data", self.fifo("f.npy"), name="f.npy")
        self.refuse(*job, "--data", self.fifo("f.npz"), name="f.npz")
        self.refuse(*job, "--data", self.fifo("f-idx3"), name="f-idx3")
        self.refuse("run", "model.onnx", "--input", "x=f.npy", name="f.npy")
        self.refuse("report", "diff", self.fifo("f.html"), "f.html", name="f.html")
        for name in ("labels.txt", "labels.npy"):
            labels = self.fifo(f"fifo_{name}")
            self.refuse("eval", "model.onnx", *DATA, "--labels", labels, name=labels)

    def external_model(self):
        self.run_quench("pack", "model.onnx", "-o", "whole.qnch")
        self.run_quench("unpack", "whole.qnch", "-o", "ext.onnx", "--external")

    def test_a_fifo_as_external_data(self):
        self.external_model()
        (self.dir / "ext.onnx.data").unlink()
        self.refuse("inspect", "ext.onnx", name=self.fifo("ext.onnx.data"))

    def shrinking(self, model, data, name):
        """An analysis whose metric cuts a file off while the program uses it."""
        result = self.run_quench("analyze", "sensitivity", model, "-o", "an", "--data", data,
                                 "--metric-command",
                                 f"cp {{model}} seen.onnx; truncate -s 0 {name}; echo 1", expect=3)
        self.assertIn(name, result.stderr)
        self.assertIn("become shorter", result.stderr)

    def test_weights_that_shrink_are_an_error(self):
        """Large ones stay in their file; small ones are read once."""
        subprocess.run([str(harness.BINARY / "quench_generate"), "transformer", str(self.dir / "large.onnx"),
                        "--size-mb", "9", "--hidden", "64", "--external"], check=True)
        harness.write_npy(self.dir / "ids.npy", "<i8", (2, 8), list(range(16)))
        harness.write_npy(self.dir / "mask.npy", "<i8", (2, 8), [1] * 16)
        self.shrinking("large.onnx", "input_ids:ids.npy,attention_mask:mask.npy", "large.onnx.data")

    def test_samples_that_shrink_are_an_error(self):
        harness.write_npy(self.dir / "long.npy", "<f4", (1, 3, 8, 8), [1.0] * 192)
        head = (self.dir / "long.npy").read_bytes()[:-768]
        head = head.replace(b"(1, 3, 8, 8)", b"(99999, 3, 8, 8)").replace(b"    \n", b"\n")
        with open(self.dir / "long.npy", "wb") as file:
            file.write(head)
            file.truncate(len(head) + 99999 * 768)  # zeros, which take no room
        snapshot = self.dir / "long.stats.partial"
        with subprocess.Popen([harness.PROGRAM, "calibrate", "model.onnx", "-o", "long.stats",
                               "--data", "long.npy", "--snapshot-every", "0"], cwd=self.dir,
                              stderr=subprocess.PIPE, text=True) as process:
            while not snapshot.exists() and process.poll() is None:
                time.sleep(0.01)
            os.truncate(self.dir / "long.npy", 1000)
            error = process.communicate(timeout=100)[1]
        self.assertEqual(process.returncode, 3, error)
        self.assertIn("long.npy", error)
        self.assertIn("become shorter", error)


if __name__ == "__main__":
    unittest.main()
