# SPDX-License-Identifier: Apache-2.0
"""--distributed and quench launch: the same results as one process, and one sentence for each
way that processes fail each other."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import unittest

import harness

LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_environment():
    """What no launcher has written into."""
    return {key: value for key, value in os.environ.items()
            if key not in LAUNCHER and not key.startswith(("SLURM_", "OMPI_", "PMI_", "MPI_", "TORCHELASTIC_"))}


def torchrun(rank, size, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port)}


class DistributedTest(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        probe = subprocess.run([harness.PROGRAM, "launch", "-n", "1", "calibrate", "model.onnx",
                                "-o", "probe.stats", "--data", "images.npy"], cwd=cls.dir,
                               check=False, capture_output=True, text=True)
        if "libgloo-dev" in probe.stderr:
            raise unittest.SkipTest(probe.stderr)

    def bytes_of(self, name):
        return (self.dir / name).read_bytes()

    def launch(self, ranks, *words, **options):
        return self.run_quench("launch", "-n", ranks, *words, **options)

    def start(self, extra, *words):
        """A process in an environment of its own."""
        return subprocess.Popen([harness.PROGRAM, *map(str, words), "--distributed"], cwd=self.dir,
                                env={**clean_environment(), **extra}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def end(self, process):
        out, errors = process.communicate(timeout=60)
        return process.returncode, out, errors

    def run_ranks(self, environments, *commands):
        """Each command in its environment; the exit codes and what each said on stderr."""
        started = [self.start(extra, *words) for extra, words in zip(environments, commands)]
        return [self.end(each) for each in started]

    # The same results.

    def test_statistics_are_those_of_one_process(self):
        self.run_quench("calibrate", "model.onnx", "-o", "one.stats", "--data", "images.npy")
        for ranks in (1, 2, 4):
            self.launch(ranks, "calibrate", "model.onnx", "-o", f"{ranks}.stats", "--data",
                        "images.npy")
            self.assertEqual(self.bytes_of(f"{ranks}.stats"), self.bytes_of("one.stats"), ranks)

    def test_more_ranks_than_batches(self):
        self.run_quench("calibrate", "model.onnx", "-o", "few.stats", "--data", "images.npy",
                        "--limit", 3)
        self.launch(4, "calibrate", "model.onnx", "-o", "few4.stats", "--data", "images.npy",
                    "--limit", 3)
        self.assertEqual(self.bytes_of("few4.stats"), self.bytes_of("few.stats"))

    def test_quantize(self):
        words = ["model.onnx", "--data", "images.npy", "--activation-observer", "KL"]
        self.run_quench("quantize", *words, "-o", "one.onnx")
        for ranks in (2, 4):
            result = self.launch(ranks, "quantize", *words, "-o", f"{ranks}.onnx")
            self.assertEqual(self.bytes_of(f"{ranks}.onnx"), self.bytes_of("one.onnx"), ranks)
            # One of them speaks.
            self.assertEqual(result.stdout.count("bytes"),
                             self.run_quench("quantize", *words, "-o",
                                             "again.onnx").stdout.count("bytes"))

    def test_eval(self):
        for words in (["--labels", "labels.npy"], ["--reference", "model.onnx"]):
            words = ["eval", "model.onnx", "--data", "images.npy", "--batch", "3", *words, "--json"]
            one = json.loads(self.run_quench(*words).stdout)
            four = json.loads(self.launch(4, *words).stdout)
            for result in (one, four):
                result.pop("seconds")
                result.pop("samples_per_second", None)
            self.assertEqual(one, four)

    def test_eval_keeps_its_bars_on_every_rank(self):
        self.launch(2, "eval", "model.onnx", "--data", "images.npy", "--labels", "labels.npy",
                    "--metric", "top1", "--at-least", "top1=101", expect=1)

    def test_sensitivity(self):
        for name, words in {"exact": [], "quick": ["--quick", "--worst", "1"],
                            "plain": ["--whole-runs"], "reverse": ["--reverse"],
                            "command": ["--metric-command", "stat -c %s {model}"]}.items():
            words = ["analyze", "sensitivity", "model.onnx", "--data", "images.npy", *words]
            self.run_quench(*words, "-o", f"{name}1")
            self.launch(3, *words, "-o", f"{name}3")
            self.assertEqual(self.bytes_of(f"{name}3/analysis.txt"),
                             self.bytes_of(f"{name}1/analysis.txt"), name)

    def test_target(self):
        words = ["analyze", "target", "model.onnx", "--data", "images.npy", "--metric", "sqnr",
                 "--at-least", "30"]
        self.run_quench(*words, "-o", "target1", "--model-out", "target1.onnx")
        self.launch(2, *words, "-o", "target2", "--model-out", "target2.onnx")
        self.assertEqual(self.bytes_of("target2.onnx"), self.bytes_of("target1.onnx"))

    def test_training_is_that_of_whole_batches(self):
        words = ["train", "model.onnx", "--data", "images.npy", "--labels", "labels.npy", "--steps",
                 "2", "--train-batch", "8", "--held-out", "4", "--json"]
        curves = []
        for name, start in (("one", []), ("two", ["launch", "-n", 2]), ("four", ["launch", "-n", 4])):
            result = self.run_quench(*start, *words, "-o", f"{name}_trained.onnx")
            curves.append([point["loss"] for point in json.loads(result.stdout)["training"]["curve"]])
        for curve in curves[1:]:
            for loss, expected in zip(curve, curves[0], strict=True):
                self.assertAlmostEqual(loss, expected, delta=1e-4 * expected)
        error = self.launch(3, "train", "model.onnx", "--data", "images.npy", "--steps", 2,
                            "--train-batch", 2, "-o", "never.onnx", expect=2)
        self.assertIn("3 ranks cannot share a batch of 2", error.stderr)

    def test_shards_without_a_network(self):
        self.run_quench("calibrate", "model.onnx", "-o", "whole.stats", "--data", "images.npy")
        parts = [f"part{i}.stats" for i in (1, 2, 3)]
        for i, part in enumerate(parts, 1):
            self.run_quench("calibrate", "model.onnx", "-o", part, "--data", "images.npy",
                            "--shard", f"{i}/3")
        made = []
        for name, files in (("whole.onnx", ["whole.stats"]), ("parts.onnx", parts)):
            self.run_quench("quantize", "model.onnx", "-o", name, "--no-metadata",
                            "--activation-observer", "moving_average_abs_max", "--stats", *files)
            made.append(self.bytes_of(name))
        self.assertEqual(*made)

    def test_environments_of_mpi_and_slurm(self):
        self.run_quench("calibrate", "model.onnx", "-o", "alone.stats", "--data", "images.npy")
        port = free_port()
        mpi = [{"OMPI_COMM_WORLD_RANK": str(i), "OMPI_COMM_WORLD_SIZE": "2",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_PORT": str(port)} for i in (0, 1)]
        slurm = [{"SLURM_PROCID": str(i), "SLURM_NTASKS": "2", "SLURM_JOB_ID": str(free_port()),
                  "SLURM_STEP_NODELIST": "localhost"} for i in (0, 1)]
        slurm[1]["SLURM_JOB_ID"] = slurm[0]["SLURM_JOB_ID"]
        mpich_port = free_port()
        # As one machine's helper, which Slurm has started, hands it on.
        mpich = [{"PMI_RANK": str(i), "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2",
                  "MASTER_PORT": str(mpich_port), "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
                 for i in (0, 1)]
        pmi_port = free_port()
        slurm_by_pmi = [{**each, "PMI_RANK": str(i), "PMI_SIZE": "2", "MASTER_PORT": str(pmi_port)}
                        for i, each in enumerate(slurm)]
        for name, environments in (("mpi", mpi), ("slurm", slurm), ("mpich", mpich),
                                   ("slurm_by_pmi", slurm_by_pmi)):
            words = ["calibrate", "model.onnx", "-o", f"{name}.stats", "--data", "images.npy"]
            for code, out, errors in self.run_ranks(environments, words, words):
                self.assertEqual((code, out, errors), (0, "", ""))
            self.assertEqual(self.bytes_of(f"{name}.stats"), self.bytes_of("alone.stats"))

    # One sentence each.

    def check_ranks(self, mention, environments, *commands, speakers=(0,)):
        """Every rank fails; those that speak say one sentence with `mention`."""
        results = self.run_ranks(environments, *commands)
        for rank, (code, out, errors) in enumerate(results):
            self.assertGreater(code, 1, (rank, errors))
            self.assertEqual(out, "")
            if rank in speakers:
                self.assertRegex(errors, r"\Aquench: error: [^\n]+\n\Z")
                self.assertIn(mention, errors)
            else:
                self.assertEqual(errors, "", rank)

    def calibrate(self, model="model.onnx", data="images.npy", *more):
        return ["calibrate", model, "-o", "never.stats", "--data", data, *more]

    def test_ranks_that_disagree(self):
        (self.dir / "other.onnx").write_bytes(self.bytes_of("model.onnx"))
        subprocess.run([harness.PROGRAM, "quantize", "model.onnx", "-o", "other.onnx", "--data",
                        "images.npy"], cwd=self.dir, check=True, capture_output=True)
        for mention, words in (
                ("the model of rank 1 is not that of rank 0", self.calibrate("other.onnx")),
                ("what is asked for of rank 1", self.calibrate("model.onnx", "images.npy",
                                                               "--batch", "2"))):
            port = free_port()
            both = [torchrun(0, 2, port), torchrun(1, 2, port)]
            results = self.run_ranks(both, self.calibrate(), words)
            self.assertTrue(all(code > 1 for code, _, _ in results), results)
            self.assertIn(mention, results[0][2])
            self.assertEqual(results[0][2].count("\n"), 1, results[0][2])
        self.assertFalse((self.dir / "never.stats").exists())

    def test_ranks_of_different_jobs(self):
        """They say so at once, and do not wait for each other until the timeout."""
        plain, elastic = self.calibrate(), self.calibrate("model.onnx", "images.npy", "--elastic")
        for mention, sizes, commands in (
                ("the number of processes of rank 1 is not that of rank 0", (2, 3), (plain, plain)),
                ("--elastic of rank 1 is not that of rank 0", (2, 2), (plain, elastic))):
            port = free_port()
            both = [torchrun(rank, size, port) for rank, size in enumerate(sizes)]
            begin = time.monotonic()
            self.check_ranks(mention, both, *commands, speakers=(0, 1))
            self.assertLess(time.monotonic() - begin, 60)

    def test_two_processes_with_one_number(self):
        port = free_port()
        ranks = [torchrun(rank, 3, port) for rank in (0, 1, 1)]
        results = self.run_ranks(ranks, *[self.calibrate()] * 3)
        self.assertTrue(all(code == 3 for code, _, _ in results), results)
        self.assertIn("rank 1: there is another rank 1 at 127.0.0.1", results[0][2])

    def test_ranks_with_other_data(self):
        harness.write_npy(self.dir / "other.npy", "<f4", (20, 3, 8, 8), [0.25] * 20 * 192)
        for verb in (["calibrate", "model.onnx", "-o", "never.stats"],
                     ["eval", "model.onnx", "--labels", "labels.npy"]):
            port = free_port()
            results = self.run_ranks([torchrun(0, 2, port), torchrun(1, 2, port)],
                                     [*verb, "--data", "images.npy"], [*verb, "--data", "other.npy"])
            self.assertTrue(all(code > 1 for code, _, _ in results), results)
            self.assertRegex(results[0][2], r"\Aquench: error: rank 1: [^\n]* of rank 1 is not that of "
                             r"rank 0[^\n]*\n\Z")

    def test_a_gpu_that_is_not_there(self):
        result = subprocess.run([harness.PROGRAM, "launch", "-n", "2", *self.calibrate(), "--device",
                                 "cuda"], cwd=self.dir, check=False, capture_output=True, text=True,
                                timeout=100)
        if result.returncode == 0:
            self.skipTest("this machine has GPUs")
        self.assertIn(result.returncode, (2, 4), result.stderr)
        self.assertRegex(result.stderr, r"\Aquench: error: [^\n]+\n\Z")

    def test_a_rank_that_fails(self):
        """Its data are there, but cannot be read: four ranks end with its sentence."""
        folders = []
        for rank in range(4):
            folder = self.dir / f"machine{rank}"
            folder.mkdir()
            for name in ("model.onnx", "images.npy"):
                (folder / name).write_bytes(self.bytes_of(name))
            folders.append(folder)
        harness.write_npy(folders[2] / "images.npy", "<f4", (20, 3, 8, 9), [0.5] * 20 * 216)
        port = free_port()
        started = [subprocess.Popen([harness.PROGRAM, *self.calibrate(), "--distributed"],
                                    cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True,
                                    env={**clean_environment(), **torchrun(rank, 4, port)})
                   for rank, folder in enumerate(folders)]
        results = [self.end(each) for each in started]
        self.assertTrue(all(code == 3 for code, _, _ in results), results)
        self.assertRegex(results[0][2], r"\Aquench: error: rank 2: images.npy[^\n]*\n\Z")
        self.assertRegex(results[2][2], r"\Aquench: error: images.npy[^\n]*\n\Z")
        self.assertEqual((results[1][2], results[3][2]), ("", ""))

    def test_a_rank_that_never_comes(self):
        port = free_port()
        self.check_ranks("rank 2 of 3 did not come within 2 s", [torchrun(0, 3, port),
                                                                torchrun(1, 3, port)],
                         self.calibrate("model.onnx", "images.npy", "--rank-timeout", "2"),
                         self.calibrate("model.onnx", "images.npy", "--rank-timeout", "20"),
                         speakers=(0, 1))

    def test_rank_0_never_comes(self):
        port = free_port()
        code, _, errors = self.end(self.start(torchrun(1, 2, port), *self.calibrate(),
                                              "--rank-timeout", "1"))
        self.assertEqual(code, 3)
        self.assertRegex(errors, r"\Aquench: error: rank 0 could not be reached at 127.0.0.1:"
                         rf"{port} within 1 s[^\n]*\n\Z")

    def test_port_in_use(self):
        with socket.socket(socket.AF_INET6) as taken:
            taken.bind(("::", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, _, errors = self.end(self.start(torchrun(0, 2, port), *self.calibrate()))
            launched = self.run_quench("launch", "-n", 2, "--port", port, *self.calibrate(), expect=3)
        self.assertEqual(code, 3)
        for said in (errors, launched.stderr):
            self.assertRegex(said,
                             rf"\Aquench: error: port {port} of this machine is in use[^\n]*\n\Z")

    def test_wrong_environments(self):
        for mention, extra in (("finds no other processes", {}),
                               ("needs WORLD_SIZE", {"RANK": "0"}),
                               ("RANK is '2'", torchrun(2, 2, 29500)),
                               ("WORLD_SIZE is 'x'", torchrun(0, "x", 29500)),
                               ("MASTER_PORT is '99999'", torchrun(0, 2, 99999)),
                               ("MASTER_ADDR", {"OMPI_COMM_WORLD_RANK": "0",
                                                "OMPI_COMM_WORLD_SIZE": "2"}),
                               ("needs PMI_SIZE", {"PMI_RANK": "0"}),
                               ("MASTER_ADDR", {"PMI_RANK": "0", "PMI_SIZE": "2"})):
            code, out, errors = self.end(self.start(extra, *self.calibrate()))
            self.assertEqual((code, out), (2, ""), errors)
            self.assertRegex(errors, r"\Aquench: error: [^\n]+\n\Z")
            self.assertIn(mention, errors)

    def test_what_cannot_be_shared(self):
        for words, mention in ((["launch", "-n", 2, "inspect", "model.onnx"], "inspect"),
                               (["launch", "-n", 2], "launch what"),
                               (["calibrate", "model.onnx", "-o", "x.stats", "--data", "images.npy",
                                 "--shard", "0/4"], "counted from 1"),
                               (["calibrate", "model.onnx", "-o", "x.stats", "--data", "images.npy",
                                 "--shard", "5/4"], "--shard")):
            self.assertIn(mention, self.run_quench(*words, expect=2).stderr)
        error = self.run_quench("calibrate", "model.onnx", "-o", "x.stats", "--data", "images.npy",
                                "--shard", "1/30", expect=3)
        self.assertIn("take fewer parts", error.stderr)

    def long_launch(self, ranks=2, *more):
        """Ranks with work for several seconds, and their process ids by rank."""
        samples = 60000
        path = self.dir / "many.npy"
        if not path.exists():
            harness.write_npy(path, "<f4", (samples, 3, 8, 8),
                              [((i * 7919) % 1000) / 250 - 2 for i in range(192)] * samples)
        launcher = subprocess.Popen([harness.PROGRAM, "launch", "-n", str(ranks), "calibrate",
                                     "model.onnx", "-o", "killed.stats", "--data", "many.npy",
                                     "--batch", "1", *more],
                                    cwd=self.dir, env=clean_environment(), stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        children = {}
        until = time.monotonic() + 20
        while len(children) < ranks and time.monotonic() < until:
            for each in pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children") \
                    .read_text().split():
                try:
                    text = pathlib.Path(f"/proc/{each}/environ").read_bytes()
                except OSError:
                    continue
                for rank in range(ranks):
                    if f"\0RANK={rank}\0".encode() in b"\0" + text:
                        children[rank] = int(each)
            time.sleep(0.05)
        self.assertEqual(len(children), ranks)
        return launcher, children

    def wait_until_busy(self, process, seconds):
        """Until a process has computed for so long: loading the engine takes less."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            times = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            if (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK") >= seconds:
                return
            time.sleep(0.02)
        self.fail("the rank does nothing")

    def test_a_rank_that_is_killed(self):
        launcher, children = self.long_launch()
        os.kill(children[1], signal.SIGKILL)
        code, out, errors = self.end(launcher)
        self.assertEqual((code, out), (5, ""), errors)
        self.assertIn("quench: error: rank 1 was ended by signal 9", errors)
        self.assertFalse((self.dir / "killed.stats").exists())

    def test_others_do_the_share_of_a_rank_that_is_killed(self):
        launcher, children = self.long_launch(3, "--elastic")
        self.wait_until_busy(children[1], 0.9)
        os.kill(children[1], signal.SIGKILL)
        code, out, errors = self.end(launcher)
        self.assertEqual((code, out), (0, ""), errors)
        self.assertEqual(errors,
                         "quench: warning: rank 1 was ended by signal 9: others do its share\n")
        self.run_quench("calibrate", "model.onnx", "-o", "alone.stats", "--data", "many.npy",
                        "--batch", "1")
        self.assertEqual(self.bytes_of("killed.stats"), self.bytes_of("alone.stats"))
        (self.dir / "killed.stats").unlink()

    def test_a_rank_that_is_killed_before_it_came(self):
        """Nobody waits for it."""
        launcher, children = self.long_launch(3, "--elastic", "--limit", "3000")
        os.kill(children[2], signal.SIGKILL)
        code, out, errors = self.end(launcher)
        self.assertEqual((code, out), (0, ""), errors)
        self.assertIn("quench: warning: rank 2 was ended by signal 9: others do its share\n", errors)
        self.run_quench("calibrate", "model.onnx", "-o", "alone.stats", "--data", "many.npy",
                        "--batch", "1", "--limit", "3000")
        self.assertEqual(self.bytes_of("killed.stats"), self.bytes_of("alone.stats"))
        (self.dir / "killed.stats").unlink()

    def test_ranks_that_never_come_to_an_elastic_job(self):
        self.run_quench("calibrate", "model.onnx", "-o", "alone.stats", "--data", "images.npy")
        words = ["calibrate", "model.onnx", "-o", "waited.stats", "--data", "images.npy", "--elastic"]
        port = free_port()
        both = [torchrun(0, 3, port), torchrun(1, 3, port)]
        first, second = self.run_ranks(both, words, words)
        self.assertEqual(first[:2], (0, ""), first)
        self.assertEqual(first[2], "quench: warning: rank 2 of 3 never came: others did its share\n")
        self.assertEqual(second, (0, "", ""))
        self.assertEqual(self.bytes_of("waited.stats"), self.bytes_of("alone.stats"))

    def test_rank_0_cannot_be_spared(self):
        launcher, children = self.long_launch(2, "--elastic")
        self.wait_until_busy(children[0], 0.9)
        os.kill(children[0], signal.SIGKILL)
        code, out, errors = self.end(launcher)
        self.assertEqual((code, out), (5, ""), errors)
        self.assertIn("quench: error: rank 0 was ended by signal 9", errors)
        self.assertFalse((self.dir / "killed.stats").exists())

    def test_elastic_results_are_those_of_one_process(self):
        self.run_quench("calibrate", "model.onnx", "-o", "still.stats", "--data", "images.npy")
        self.launch(3, "calibrate", "model.onnx", "-o", "still3.stats", "--data", "images.npy",
                    "--elastic")
        self.assertEqual(self.bytes_of("still3.stats"), self.bytes_of("still.stats"))
        words = ["analyze", "sensitivity", "model.onnx", "--data", "images.npy"]
        self.run_quench(*words, "-o", "still1")
        self.launch(3, *words, "-o", "still3", "--elastic")
        self.assertEqual(self.bytes_of("still3/analysis.txt"), self.bytes_of("still1/analysis.txt"))
        self.assertIn("--distributed", self.run_quench(
            "calibrate", "model.onnx", "-o", "x.stats", "--data", "images.npy", "--elastic",
            expect=2).stderr)

    def test_a_launch_that_is_stopped(self):
        launcher, children = self.long_launch()
        launcher.send_signal(signal.SIGTERM)
        code, _, errors = self.end(launcher)
        self.assertEqual((code, errors), (130, ""))
        for process in children.values():
            self.assertFalse(pathlib.Path(f"/proc/{process}").exists())


if __name__ == "__main__":
    unittest.main()
