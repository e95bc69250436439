# SPDX-License-Identifier: Apache-2.0
"""The functions of the package, as a user calls them."""
import pathlib
import subprocess
import unittest

from testing import BINARY, IMAGES, MODEL, PythonTest, images, labels, np, quench

QUICK = {"held_out": 8, "equalize": "never", "bias_correction": "fast"}


class Models(PythonTest):
    def test_load_save_and_look(self):
        model = quench.load(MODEL)
        self.assertEqual(model.inputs[0].dtype, "float32")
        self.assertEqual(model.inputs[0].shape[1:], [1, 28, 28])
        self.assertIn("Conv", [node.op_type for node in model.nodes])
        weight = model.constant(model.constants[0])
        self.assertFalse(weight.flags.writeable)
        quench.save(model, self.dir / "again.onnx")
        self.assertEqual(pathlib.Path(MODEL).read_bytes(), (self.dir / "again.onnx").read_bytes())
        summary = quench.inspect(model)
        self.assertEqual(summary.num_nodes, len(model.nodes))
        self.assertEqual(summary.to_dict()["op_counts"], quench.inspect(MODEL).op_counts)

    def test_a_constant_is_not_copied(self):
        model = quench.load(MODEL)
        name = max(model.constants, key=lambda each: model.constant(each).size)
        first, second = model.constant(name), model.constant(name)
        self.assertEqual(first.ctypes.data, second.ctypes.data)
        del model, second
        self.assertTrue(np.isfinite(first).all())  # what it lies in is still there

    def test_pack_and_lint(self):
        summary = quench.pack(MODEL, self.path("m.qnch"))
        self.assertEqual(summary.bytes, (self.dir / "m.qnch").stat().st_size)
        self.assertTrue(any(not line.integer for line in quench.lint(MODEL)))
        self.assert_error("usage", ["qnch"], lambda: quench.pack(MODEL, self.path("m.onnx")))
        self.assert_error("usage", ["onnxruntime"], lambda: quench.lint(MODEL, "onnxrutime"))


class Sessions(PythonTest):
    def test_run(self):
        session = quench.Session(MODEL)
        self.assertEqual(len(session.inputs), 1)
        x = images(4)
        by_name = session.run({session.inputs[0]: x})
        self.assertEqual(list(by_name), session.outputs)
        np.testing.assert_array_equal(session.run(x)[session.outputs[0]],
                                      by_name[session.outputs[0]])
        accuracy = (by_name[session.outputs[0]].argmax(1) == labels(4)).mean()
        self.assertGreater(accuracy, 0.7)

    def test_what_is_wrong_is_said(self):
        session = quench.Session(MODEL)
        name = session.inputs[0]
        x = images(2)
        self.assert_error("bad_data", [name], lambda: session.run({"no_such": x}))
        self.assert_error("bad_data", [], lambda: session.run({name: x[:, :, :5]}))
        self.assert_error("bad_data", ["inputs"], lambda: session.run([x, x]))
        self.assert_error("bad_data", ["dtype"], lambda: session.run({name: np.array(["a"])}))
        self.assert_error("io", ["nowhere"], lambda: quench.Session("nowhere.onnx"))
        self.assert_error("usage", ["path"], lambda: quench.Session(3))
        self.assert_error("usage", ["did you mean 'threads'"], lambda: quench.Session(MODEL, theads=1))
        self.assert_error("usage", ["by name"], lambda: session.run(x, [3]))
        self.assertEqual(list(session.run(x, session.outputs[0])), session.outputs)

    def test_what_is_no_model_is_not_saved(self):
        for wrong in (None, MODEL, 3):
            self.assert_error("usage", ["quench.Model"], lambda wrong=wrong: quench.save(
                wrong, self.path("no.onnx")))


class Quantize(PythonTest):
    def test_arrays_give_what_files_give(self):
        x = images()
        np.save(self.path("x.npy"), x)
        from_file = quench.quantize(MODEL, self.path("a.onnx"), data=self.path("x.npy"), **QUICK,
                                    no_metadata=True)
        from_array = quench.quantize(MODEL, self.path("b.onnx"), data=x, **QUICK, no_metadata=True)
        self.assertEqual((self.dir / "a.onnx").read_bytes(), (self.dir / "b.onnx").read_bytes())
        self.assertEqual(from_file.calibration_samples, from_array.calibration_samples)
        self.assertGreater(from_array.outputs[0].scores["sqnr"], 15)
        self.assertLess(from_array.bytes_after, from_array.bytes_before / 2)

    def test_the_program_gives_the_same_bytes(self):
        np.save(self.path("x.npy"), images())
        quench.quantize(MODEL, self.path("a.onnx"), data=self.path("x.npy"), held_out=8,
                        skip_node=[quench.load(MODEL).nodes[0].name], no_metadata=True)
        subprocess.run([BINARY / "quench", "quantize", MODEL, "-o", self.path("b.onnx"), "--data",
                        self.path("x.npy"), "--held-out", "8", "--no-metadata", "--quiet",
                        "--skip-node", quench.load(MODEL).nodes[0].name],
                       check=True, stdout=subprocess.DEVNULL)
        self.assertEqual((self.dir / "a.onnx").read_bytes(), (self.dir / "b.onnx").read_bytes())

    def test_without_an_output_the_model_is_in_memory(self):
        result = quench.quantize(MODEL, data=images(), **QUICK)
        self.assertEqual(result.path, "")
        scores = quench.evaluate(result.model, images(), labels=labels()).scores
        self.assertGreater(scores["top1"], 80)
        again = quench.quantize(quench.load(MODEL), data=images(), **QUICK)
        self.assertEqual(again.integer_nodes, result.integer_nodes)
        self.assertIn("QuantizeResult(", repr(result))

    def test_weights_alone_need_no_data(self):
        result = quench.quantize(MODEL, type="weight", bits=4)
        self.assertEqual({weight.bits for weight in result.weights}, {4})

    def test_statistics(self):
        quench.calibrate(MODEL, self.path("m.stats"), data=images(), held_out=0)
        result = quench.quantize(MODEL, stats=self.path("m.stats"), no_bias_correction=True,
                                 equalize="never")
        self.assertGreater(result.integer_nodes, 0)

    def test_an_observer_of_the_users_own(self):
        seen = []

        def half(statistic, spec):
            seen.append((statistic.samples, spec.bits, int(statistic.bins.sum())))
            return statistic.min / 2, statistic.max / 2

        clipped = quench.quantize(MODEL, data=images(), activation_observer=half, **QUICK)
        self.assertTrue(seen and all(samples > 0 and bits == 8 for samples, bits, _ in seen))
        whole = quench.quantize(MODEL, data=images(), activation_observer="min_max", **QUICK)
        self.assertLess(clipped.outputs[0].scores["sqnr"], whole.outputs[0].scores["sqnr"] - 1)

    def test_observers_that_fail(self):
        def raises(statistic, spec):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            quench.quantize(MODEL, data=images(), activation_observer=raises)
        self.assert_error("bad_data", ["<lambda>", "two finite numbers"], lambda: quench.quantize(
            MODEL, data=images(), activation_observer=lambda s, spec: float("nan")))
        self.assert_error("usage", ["did you mean 'mse'"], lambda: quench.quantize(
            MODEL, data=images(), activation_observer="msee"))

    def test_progress(self):
        calls = []
        quench.quantize(MODEL, data=images(), progress=lambda *told: calls.append(told), **QUICK)
        self.assertTrue(calls)
        self.assertEqual(len(calls[0]), 3)

        def stop(phase, done, total):
            raise StopAsyncIteration(phase)

        with self.assertRaises(StopAsyncIteration):
            quench.quantize(MODEL, data=images(), progress=stop)

    def test_bars_are_never_more_than_full(self):
        made = []

        class Bar:  # as tqdm's
            def __init__(self, desc, total, leave):
                self.n, self.total = 0, total
                made.append((desc, self))

            def update(self, more):
                assert more >= 0, more
                self.n += more

            def close(self):
                assert self.total is None or self.n <= self.total, (self.n, self.total)

        from quench import _progress
        show = _progress._Bars(Bar)
        for told in (("a", 1, 4), ("a", 4, 4), ("a", 12, 16), ("a", 2, 16), ("b", 0, 0), ("b", 3, 0)):
            show(*told)
        show.close()
        self.assertEqual([(desc, bar.n, bar.total) for desc, bar in made],
                         [("a", 12, 16), ("a", 2, 16), ("b", 3, None)])

    def test_report(self):
        quench.quantize(MODEL, self.path("m.onnx"), data=images(), report=self.dir / "r.html",
                        **QUICK)
        self.assertIn("<html", (self.dir / "r.html").read_text())


class Scoring(PythonTest):
    def test_evaluate(self):
        by_files = quench.evaluate(MODEL, IMAGES, "top1", mean=[72.9], std=[90], limit=64)
        by_arrays = quench.evaluate(MODEL, images(), ["top1", "top5"], labels=labels())
        self.assertEqual(by_files.scores["top1"], by_arrays.scores["top1"])
        self.assertEqual(by_arrays.samples, 64)

    def test_metrics_of_the_users_own(self):
        def wrong(actual, expected):
            self.assertEqual((actual.shape, expected.shape), ((64, 10), (64,)))
            return (actual.argmax(1) != expected).mean()

        scores = quench.evaluate(MODEL, images(), [wrong, "top1"], labels=labels()).scores
        self.assertAlmostEqual(100 - 100 * scores["wrong"], scores["top1"], places=4)

        def distance(actual, expected):
            return np.abs(actual - expected).max()

        same = quench.evaluate(MODEL, images(), distance, reference=MODEL).scores
        self.assertEqual(same["distance"], 0)

    def test_warnings_speak_of_arguments(self):
        result = quench.quantize(MODEL, data=images(1))
        self.assertTrue(any("only 1 sample to" in line for line in result.warnings))
        self.assertFalse([line for line in result.warnings if "--" in line])

    def test_metrics_that_fail(self):
        def evaluate(metric, **more):
            return lambda: quench.evaluate(MODEL, images(), metric, labels=labels(), **more)

        def broken(actual, expected):
            return actual.no_such_thing

        with self.assertRaises(AttributeError):
            evaluate(broken)()
        with self.assertRaisesRegex(ValueError, "text"):
            evaluate(lambda a, e: "text")()
        self.assert_error("bad_data", ["NaN"], evaluate(lambda a, e: float("nan")))
        self.assert_error("usage", ["did you mean 'top1'"], evaluate("top11"))
        self.assert_error("usage", ["callable"], evaluate(3))
        for metric in ("top1", lambda actual, expected: 1.0):
            self.assert_error("bad_data", ["needs labels, and the given data has", "give labels="],
                              lambda metric=metric: quench.evaluate(MODEL, images(), metric))
        self.assert_error("usage", ["give data="], lambda: quench.evaluate(MODEL))

    def test_compare_and_bench(self):
        result = quench.compare(MODEL, MODEL, images(8))
        self.assertEqual(result.outputs[0].scores["max_abs"] if "max_abs" in
                         result.outputs[0].scores else 0, 0)
        self.assertTrue(result.layers)
        timing = quench.bench(MODEL, batch=2, runs=5, warmup=1)
        self.assertGreater(timing.median_ms, 0)
        self.assertEqual(timing.batch, 2)


class Analysis(PythonTest):
    def test_sensitivity(self):
        result = quench.analyze(MODEL, images(), save_dir=self.path("a"), held_out=8)
        self.assertTrue(result.layers)
        self.assertTrue((self.dir / "a" / "analysis.txt").exists())

    def test_an_eval_function(self):
        calls = []

        def score(model):
            calls.append(model)
            return quench.evaluate(model, images(32), "top1", labels=labels(32)).scores["top1"]

        result = quench.analyze(MODEL, images(), "target", at_least=50, eval_function=score,
                                save_dir=self.path("a"), output=self.path("t.onnx"))
        self.assertTrue(result.met and calls)
        self.assertTrue((self.dir / "t.onnx").exists())

        def fails(model):
            raise ZeroDivisionError("mine")

        with self.assertRaises(ZeroDivisionError):
            quench.analyze(MODEL, images(), "target", at_least=50, eval_function=fails,
                           save_dir=self.path("b"))
        self.assert_error("bad_data", ["NaN"], lambda: quench.analyze(
            MODEL, images(), "target", at_least=5, eval_function=lambda m: float("nan"),
            save_dir=self.path("c")))
        self.assert_error("usage", ["sensitivity"],
                          lambda: quench.analyze(MODEL, images(), "sensitive"))
        self.assert_error("usage", ["at_least is NaN"], lambda: quench.analyze(
            MODEL, images(), "target", at_least=float("nan"), metric="sqnr", save_dir=self.path("d")))


class Keywords(PythonTest):
    def test_unknown_ones(self):
        self.assert_error("usage", ["held_outt", "did you mean 'held_out'"],
                          lambda: quench.quantize(MODEL, data=images(), held_outt=3))
        self.assert_error("usage", ["did you mean 'metrics'"],
                          lambda: quench.compare(MODEL, MODEL, metrcs=[]))
        self.assert_error("usage", ["did you mean 'warmup'"],
                          lambda: quench.bench(MODEL, warmpu=1))
        for theirs, ours in (("calibrate_size", "limit"), ("algo", "activation_observer")):
            self.assert_error("usage", [f"here it is '{ours}'"],
                              lambda theirs=theirs: quench.quantize(MODEL, data=images(), **{theirs: 3}))

    def test_wrong_values(self):
        def quantize(**options):
            return lambda: quench.quantize(MODEL, data=images(), **options)

        self.assert_error("usage", ["activation_bits", "2 to 16"], quantize(activation_bits=99))
        self.assert_error("usage", ["never"], quantize(equalize="sometimes"))
        self.assert_error("usage", ["per_channel", "per_layer"],
                          quantize(per_channel=True, per_layer=True))
        self.assert_error("usage", ["type weight"], quantize(bits=4))
        self.assert_error("usage", ["threads"], quantize(threads=-1))
        self.assert_error("usage", ["threads", "1024"], quantize(threads=10**9))
        self.assert_error("usage", ["a callable chooses ranges of activations"],
                          quantize(weight_observer=lambda statistic, spec: 1))
        self.assert_error("usage", ["seed"], quantize(seed="x"))

    def test_where_models_run(self):
        def quantize(**options):
            return lambda: quench.quantize(MODEL, data=images(), **options)

        self.assert_error("usage", ["expected cpu, cuda or cuda:1"], quantize(device="gpu"))
        self.assert_error("usage", ["is for a GPU"], quantize(precision="half"))
        self.assert_error("usage", ["expected cpu, cuda or cuda:1"],
                          lambda: quench.Session(MODEL, device="gpu"))
        self.assert_error("usage", ["max_memory_mb is 3", "50"], quantize(max_memory_mb=3))
        self.assert_error("usage", ["leave out device"],
                          quantize(max_memory_mb=3000, device="cuda"))
        self.assert_error("unsupported", ["ceiling of 50 MB"], quantize(max_memory_mb=50))
        self.assertEqual(quantize(max_memory_mb=8000, device="cpu")().model.dump(),
                         quantize()().model.dump())

    def test_every_option_is_in_the_docstring(self):
        for row in quench._quench._options():
            if row["jobs"] & 1 and row["name"] not in ("data", "labels"):
                self.assertIn(f"    {row['name']}: ", quench.quantize.__doc__)
        self.assertNotIn("--skip", quench.quantize.__doc__)


if __name__ == "__main__":
    unittest.main()
