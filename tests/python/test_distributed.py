# SPDX-License-Identifier: Apache-2.0
"""Calls that several processes share: the results of one, and one sentence for each way to fail."""
import os
import pathlib
import socket
import subprocess
import sys
import textwrap
import unittest

from testing import MODEL, PythonTest, images, labels, quench

HERE = pathlib.Path(__file__).parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class DistributedTest(PythonTest):
    def run_ranks(self, *bodies, environment=True):
        """Each body as a program of its own, of so many ranks; exit code and output of each."""
        port, started = free_port(), []
        for rank, body in enumerate(bodies):
            program = (f"import sys; sys.path[:0] = [{str(HERE)!r}]\n"
                       "from testing import *\n"
                       f"rank, port, size = {rank}, {port}, {len(bodies)}\n"
                       f"place = {{'rank': rank, 'size': size, 'port': port, 'local_size': size}}\n"
                       + textwrap.dedent(body))
            launched = {"RANK": str(rank), "WORLD_SIZE": str(len(bodies)), "MASTER_PORT": str(port),
                        "MASTER_ADDR": "127.0.0.1"} if environment else {}
            started.append(subprocess.Popen(
                [sys.executable, "-B", "-c", program], cwd=self.dir, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, env={**os.environ, **launched}))
        return [(each.communicate(timeout=120)[0], each.returncode) for each in started]

    def run_all(self, body, ranks=2, **options):
        outputs = self.run_ranks(*[body] * ranks, **options)
        for output, code in outputs:
            if "libgloo-dev" in output:
                self.skipTest(output)
            self.assertEqual(code, 0, output)
        return [output for output, _ in outputs]

    def same(self, *names):
        return len({(self.dir / name).read_bytes() for name in names}) == 1

    def test_jobs_are_those_of_one_process(self):
        """One after the other, in the same processes."""
        outputs = self.run_all("""
            quench.calibrate(MODEL, "two.stats", images(), distributed=True)
            result = quench.quantize(MODEL, "two.onnx", images(), distributed=True)
            scores = quench.evaluate("two.onnx", images(),
                                     "top1", labels=labels(), distributed=True)
            print(scores.outputs[0].scores["top1"], scores.samples)
            """)
        quench.calibrate(MODEL, self.path("one.stats"), images())
        quench.quantize(MODEL, self.path("one.onnx"), images())
        self.assertTrue(self.same("one.stats", "two.stats"))
        self.assertTrue(self.same("one.onnx", "two.onnx"))
        alone = quench.evaluate(self.path("one.onnx"), images(), "top1", labels=labels())
        said = f"{alone.outputs[0].scores['top1']} {alone.samples}\n"
        self.assertEqual(outputs, [said, said])

    def test_analyze_and_train_by_arguments(self):
        outputs = self.run_all("""
            found = quench.analyze(MODEL, images(), save_dir="two", distributed=place)
            trained = quench.train(MODEL, "trained.onnx", images(), labels=labels(), steps=2,
                                   distributed=place)
            print([layer.layer for layer in found.layers])
            """, environment=False)
        alone = quench.analyze(MODEL, images(), save_dir=self.path("one"))
        self.assertTrue(self.same("one/analysis.txt", "two/analysis.txt"))
        self.assertEqual(outputs, [f"{[layer.layer for layer in alone.layers]}\n"] * 2)
        quench.Session(self.path("trained.onnx"))

    def test_ranks_that_disagree(self):
        for output, code in self.run_ranks(*[f"""
                quench.calibrate(MODEL, "never.stats", images(), batch={batch}, distributed=True)
                """ for batch in (4, 5)]):
            if "libgloo-dev" in output:
                self.skipTest(output)
            self.assertEqual(code, 1)
            self.assertIn("what is asked for of rank 1 is not that of rank 0", output)

    def test_a_function_that_raises_ends_all(self):
        raises = """
            def score(actual, expected):
                raise ValueError("no score today")
            quench.evaluate(MODEL, images(), [score], labels=labels(), distributed=True)
            """
        for output, code in self.run_ranks(raises, raises):
            if "libgloo-dev" in output:
                self.skipTest(output)
            self.assertEqual(code, 1, output)
            self.assertIn("ValueError: no score today", output)

    def test_a_rank_that_never_comes(self):
        def alone(**place):
            return lambda: quench.calibrate(MODEL, self.path("x.stats"), images(), distributed=place)

        place = {"size": 2, "port": free_port(), "timeout": 1}
        self.assert_error("io", ["rank 0 could not be reached", "within 1 s"], alone(rank=1, **place))
        self.assert_error("io", ["rank 1 of 2 did not come within 1 s"], alone(rank=0, **place))

    def test_what_is_not_done_to_parts_of_a_model(self):
        for call, said in (("train(MODEL, 'x.onnx', images(), labels=labels(), steps=1", "quench/qat.h"),
                           ("analyze(MODEL, images(), 'target', at_least=1", "analyze sensitivity"),
                           ("quantize(MODEL, 'x.onnx', images(), type='weight'", "each part by itself")):
            output, = self.run_all(f"""
                try:
                    quench.{call}, distributed=dict(place, tensor_parallel=True))
                except quench.Error as error:
                    print(error)
                """, ranks=1, environment=False)
            self.assertIn(said, output)

    def test_wrong_arguments(self):
        def calibrate(distributed):
            return lambda: quench.calibrate(MODEL, self.path("x.stats"), images(), distributed=distributed)

        for variable in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
            os.environ.pop(variable, None)
        self.assert_error("usage", ["distributed finds no other processes", "torchrun"], calibrate(True))
        self.assert_error("usage", ["True, False or a dict"], calibrate(2))
        self.assert_error("usage", ["has no 'rang'", "did you mean 'rank'"],
                          calibrate({"rank": 0, "size": 2, "rang": 1}))
        self.assert_error("usage", ["rank 2 of 2"], calibrate({"rank": 2, "size": 2}))
        self.assert_error("usage", ["port of distributed cannot be 'x'"],
                          calibrate({"rank": 0, "size": 2, "port": "x"}))
        self.assert_error("usage", ["there is no argument 'distributed'"],
                          lambda: quench.compare(MODEL, MODEL, images(), distributed=True))
        calibrate(False)()


if __name__ == "__main__":
    unittest.main()
