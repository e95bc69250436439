# SPDX-License-Identifier: Apache-2.0
"""Scripts for ONNX Runtime and PaddleSlim, with only the import changed."""
import itertools
import os
import pathlib
import subprocess
import sys
import unittest

from testing import MODEL, PACKAGE, PythonTest, images, labels, np, quench

import quench.paddleslim as paddleslim
from quench.onnxruntime import quantization
from quench.onnxruntime.quantization import matmul_4bits_quantizer
from quench.onnxruntime import (CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType,
                                quant_pre_process, quantize_dynamic, quantize_static)
from quench.paddleslim.quant.observers import (AbsMaxChannelWiseWeightObserver, AbsmaxObserver,
                                               HistObserver)

NAME = quench.load(MODEL).inputs[0].name


class Reader(CalibrationDataReader):
    """As the documentation of ONNX Runtime has it."""

    def __init__(self, count=24):
        self.enum_data = None
        self.data = [{NAME: row[None]} for row in images(count)]

    def get_next(self):
        if self.enum_data is None:
            self.enum_data = iter(self.data)
        return next(self.enum_data, None)

    def rewind(self):
        self.enum_data = None


def op_types(path):
    return {node.op_type for node in quench.load(path).nodes}


class OnnxRuntime(PythonTest):
    def test_static(self):
        quantize_static(MODEL, self.path("a.onnx"), Reader(), quant_format=QuantFormat.QDQ,
                        per_channel=False, weight_type=QuantType.QInt8)
        self.assertIn("QuantizeLinear", op_types(self.path("a.onnx")))
        quantize_static(MODEL, self.path("b.onnx"), Reader(), QuantFormat.QOperator,
                        per_channel=True, calibrate_method=CalibrationMethod.Entropy,
                        activation_type=QuantType.QUInt8)
        self.assertIn("QLinearConv", op_types(self.path("b.onnx")))

    def test_which_nodes(self):
        layers = [n.name for n in quench.load(MODEL).nodes if n.op_type in ("Conv", "Gemm")]
        result = quantize_static(MODEL, self.path("a.onnx"), Reader(), nodes_to_exclude=layers[:1])
        self.assertIn(layers[0], [layer.node for layer in result.float_layers])
        result = quantize_static(MODEL, self.path("b.onnx"), Reader(), nodes_to_quantize=layers[1:2])
        left = [layer.node for layer in result.float_layers]
        self.assertNotIn(layers[1], left)
        self.assertIn(layers[0], left)
        quantize_static(MODEL, self.path("c.onnx"), Reader(), op_types_to_quantize=["Conv"])

    def test_extra_options(self):
        with self.assertLogs("quench", "WARNING") as logs:
            quantize_static(MODEL, self.path("a.onnx"), Reader(),
                            calibrate_method=CalibrationMethod.Percentile,
                            extra_options={"CalibPercentile": 99.9, "MatMulConstBOnly": True})
        self.assertIn("MatMulConstBOnly", "".join(logs.output))
        self.assertEqual(QuantFormat.from_string("QDQ"), QuantFormat.QDQ)
        with self.assertRaisesRegex(ValueError, "QOperator"):
            QuantFormat.from_string("no")

    def test_dynamic_and_external_data(self):
        quant_pre_process(MODEL, self.path("p.onnx"))
        result = quantize_dynamic(self.path("p.onnx"), self.path("d.onnx"),
                                  weight_type=QuantType.QInt8)
        self.assertLess(result.bytes_after, result.bytes_before)
        quantize_static(MODEL, self.path("e.onnx"), Reader(), use_external_data_format=True)
        self.assertGreater(len(list(self.dir.glob("e.onnx*"))), 1)

    def test_modules_that_scripts_import_from(self):
        """As ONNX Runtime's documentation spells them."""
        from quench.onnxruntime.quantization import calibrate, quant_utils, quantize, shape_inference
        self.assertIs(calibrate.CalibrationDataReader, CalibrationDataReader)
        self.assertIs(quant_utils.QuantType, QuantType)
        self.assertIs(shape_inference.quant_pre_process, quant_pre_process)
        self.assertTrue(callable(quantize))
        from quench.onnxruntime.quantization.quantize import quantize_static as same
        self.assertIs(same, quantize_static)

    def test_preprocess(self):
        subprocess.run([sys.executable, "-m", "quench.onnxruntime.quantization.preprocess", "--input",
                        MODEL, "--output", self.path("p.onnx"), "--skip_optimization", "True"],
                       env={**os.environ, "PYTHONPATH": str(PACKAGE)}, check=True)
        self.assertEqual(op_types(self.path("p.onnx")), op_types(MODEL))
        quant_pre_process(input_model_path=MODEL, output_model_path=self.path("q.onnx"))
        with self.assertRaisesRegex(ValueError, "output_model_path"):
            quant_pre_process(MODEL)

    def test_configurations(self):
        config = quantization.StaticQuantConfig(Reader(), calibrate_method=CalibrationMethod.Percentile,
                                                per_channel=True)
        quantization.quantize(MODEL, self.path("s.onnx"), config)
        self.assertIn("QuantizeLinear", op_types(self.path("s.onnx")))
        quantization.quantize(MODEL, self.path("d.onnx"), quantization.DynamicQuantConfig())
        self.assertTrue((self.dir / "d.onnx").exists())

    def test_weights_in_few_bits(self):
        config = matmul_4bits_quantizer.DefaultWeightOnlyQuantConfig(
            block_size=32, is_symmetric=True, accuracy_level=4,
            quant_format=quantization.quant_utils.QuantFormat.QOperator,
            op_types_to_quantize=("MatMul", "Gemm"), quant_axes=(("MatMul", 0), ("Gather", 1)))
        model = quantization.quant_utils.load_model_with_shape_infer(pathlib.Path(MODEL))
        quant = matmul_4bits_quantizer.MatMul4BitsQuantizer(
            model, nodes_to_exclude=None, nodes_to_include=None, algo_config=config)
        quant.process()
        self.assertEqual({weight.bits for weight in quant.result.weights}, {4})
        quant.model.save_model_to_file(self.path("w.onnx"), True)
        self.assertGreater(len(list(self.dir.glob("w.onnx*"))), 1)

    def test_wrong_readers(self):
        self.assert_error("bad_data", ["no samples"],
                          lambda: quantize_static(MODEL, self.path("a.onnx"), Reader(0)))


class PaddleSlim(PythonTest):
    def test_static(self):
        x = images(24)
        common = {"model_dir": MODEL, "batch_size": 4, "batch_nums": 3, "algo": "avg"}
        paddleslim.quant.quant_post_static(None, quantize_model_path=self.path("a"), **common,
                                           batch_generator=lambda: iter([(row[None],) for row in x]))
        self.assertTrue((self.dir / "a" / "model.onnx").exists())
        paddleslim.quant_post_static(executor=None, quantize_model_path=self.path("b.onnx"),
                                     **common, sample_generator=lambda: ((row,) for row in
                                                                         itertools.cycle(x)))
        paddleslim.quant_post_static(None, MODEL, self.path("c.onnx"), hist_percent=0.999,
                                     data_loader=[{NAME: x}], bias_correction=True)
        self.assertTrue((self.dir / "c.onnx").exists())

    def test_static_by_position(self):
        x = images(8)
        paddleslim.quant_post_static(None, MODEL, self.path("p"), None, lambda: ((row,) for row in x))
        self.assertTrue((self.dir / "p" / "model.onnx").exists())

    def test_rows_of_numbers_take_the_shape_of_the_input(self):
        """As paddle.dataset.mnist gives images."""
        x, y = images(8), labels(8)
        paddleslim.quant_post_static(
            None, MODEL, self.path("r.onnx"), batch_nums=2, batch_size=4,
            sample_generator=lambda: ((row.ravel(), int(label)) for row, label in zip(x, y)))
        self.assertTrue((self.dir / "r.onnx").exists())

    def test_static_is_told_what_is_wrong(self):
        self.assert_error("usage", ["data_loader"], lambda: paddleslim.quant_post_static(
            None, MODEL, self.path("a.onnx")))
        self.assert_error("usage", ["did you mean 'algo'"], lambda: paddleslim.quant_post_static(
            None, MODEL, self.path("a.onnx"), data_loader=[images(4)], alog="KL"))
        self.assert_error("usage", ["did you mean 'hist'"], lambda: paddleslim.quant_post_static(
            None, MODEL, self.path("a.onnx"), data_loader=[images(4)], algo="hst"))

    def test_dynamic(self):
        paddleslim.quant.quant_post_dynamic(model_dir=MODEL, save_model_dir=self.path("d"),
                                            weight_bits=8, generate_test_model=True)
        names = {p.parent.name for p in pathlib.Path(self.path("d")).rglob("*.onnx")}
        self.assertEqual(names, {"quantized_model", "test_model"})

    def test_ptq(self):
        config = paddleslim.QuantConfig(activation=HistObserver(percent=0.9999),
                                        weight=AbsMaxChannelWiseWeightObserver())
        config.add_type_config("Linear", activation=None, weight=None)
        ptq = paddleslim.PTQ(config)
        observed = ptq.quantize(quench.load(MODEL), inplace=True)
        outputs = [observed(batch) for batch in np.split(images(32), 4)]
        self.assertEqual(outputs[0].shape, (8, 10))
        model = ptq.convert(observed, inplace=True)
        scores = quench.evaluate(model, images(), "top1", labels=labels()).scores
        self.assertGreater(scores["top1"], 80)
        self.assert_error("bad_data", ["2 arrays"], lambda: observed(images(1), images(1)))
        with self.assertRaises(quench.Error):
            paddleslim.PTQ(paddleslim.QuantConfig(AbsmaxObserver(quant_bits=77), None)).quantize(MODEL)

    def test_legacy_ptq(self):
        ptq = paddleslim.PTQ(activation_quantizer="HistQuantizer", bins=2048, upsample_bins=32,
                             hist_percent=0.9999)
        observed = ptq.quantize(MODEL, fuse=True)
        observed(images(16))
        ptq.save_quantized_model(observed, self.path("l.onnx"))
        self.assertTrue((self.dir / "l.onnx").exists())
        self.assert_error("usage", ["KLQuantizer"],
                          lambda: paddleslim.PTQ(activation_quantizer="KLQuantiser"))

    def test_analysis(self):
        x, y = images(32), labels(32)

        def eval_function(exe, program, test_feed_names, fetch_list):
            out, = exe.run(program, feed={test_feed_names[0]: x}, fetch_list=fetch_list)
            return (out.argmax(1) == y).mean()

        analysis = paddleslim.AnalysisPTQ(
            model_dir=MODEL, eval_function=eval_function, data_loader=[x], resume=False,
            save_dir=self.path("r"), ptq_config={"algo": "avg", "quantizable_op_type": ["conv2d"]})
        result = analysis.metric_error_analyse()
        self.assertTrue(result.layers and 0 <= result.layers[0].metric <= 1)
        self.assertTrue(analysis.get_target_quant_model(0.5).met)
        analysis.statistical_analyse()
        self.assertTrue((self.dir / "r" / "statistic.csv").exists())

    def test_analysis_of_the_next_version(self):
        x, folder = images(16), self.dir / "a25"
        paddleslim.quant.Analysis(MODEL, data_loader=[x], save_dir=str(folder),
                                  quant_config={"algo": "avg"}).metric_error_analyse()
        self.assertIn("sensitivity metric", (folder / "analysis.txt").read_text())
        paddleslim.quant_post_static(None, MODEL, self.path("q.onnx"), data_loader=[x])
        ranked = paddleslim.quant.AnalysisQAT(
            quant_model_dir=self.path("q.onnx"), float_model_dir=MODEL, data_loader=[x],
            save_dir=self.path("aq"), quantizable_op_type=["conv2d"],
            qat_metric=0.5).metric_error_analyse()
        self.assertEqual({layer.op_type for layer in ranked.layers}, {"Conv"})
        self.assertEqual(ranked.quantized_metric, 0.5)
        ranked = paddleslim.quant.Analysis(MODEL, self.path("q.onnx"), data_loader=[x],
                                           save_dir=self.path("a25q")).metric_error_analyse()
        self.assertTrue(ranked.layers)

    def test_modules_that_scripts_import_from(self):
        """As PaddleSlim's documentation spells them."""
        from quench.paddleslim.dygraph.quant import QAT
        from quench.paddleslim.quant.analysis import AnalysisQuant
        from quench.paddleslim.quant.analysis_ptq import AnalysisPTQ
        from quench.paddleslim.quant.analysis_qat import AnalysisQAT
        from quench.paddleslim.quant.quanter import quant_post_static
        self.assertIs(QAT, paddleslim.QAT)
        self.assertIs(AnalysisPTQ, paddleslim.AnalysisPTQ)
        self.assertIs(AnalysisQuant, AnalysisPTQ)
        self.assertIs(AnalysisQAT, paddleslim.AnalysisQAT)
        self.assertIs(quant_post_static, paddleslim.quant.quant_post)

    def test_a_layer_of_another_framework(self):
        layer = type("Layer", (), {"__module__": "paddle.nn"})()
        self.assert_error("usage", ["paddle.jit.save"], lambda: quench.inspect(layer))


class Training(PythonTest):
    def test_qat(self):
        qat = paddleslim.QAT({"weight_bits": 3, "weight_quantize_type": "channel_wise_lsq_weight",
                              "activation_quantize_type": "lsq_act"})
        net = qat.quantize(MODEL)
        self.assert_error("usage", ["fit"], lambda: qat.save_quantized_model(net, self.path("n.onnx")))
        net.fit(images(120), steps=8, train_batch=16, held_out=20, seed=1)
        qat.save_quantized_model(net, self.path("q.onnx"))
        quench.train(MODEL, self.path("t.onnx"), images(120), steps=8, train_batch=16, held_out=20,
                     seed=1, weight_bits=3, activation_bits=8, weight_quanter="lsq_plus",
                     activation_quanter="lsq_plus", op_types=["Conv", "Gemm"])
        x = images(8)
        got, wanted = (quench.Session(self.path(name)).run(x) for name in ("q.onnx", "t.onnx"))
        for name in wanted:
            np.testing.assert_array_equal(got[name], wanted[name])

    def test_qat_by_labels_for_whole_tensors(self):
        qat = paddleslim.QAT({"weight_quantize_type": "abs_max", "moving_rate": 0.8,
                              "activation_preprocess_type": "PACT",
                              "quantizable_layer_type": ["Conv2D"]})
        net = qat.quantize(quench.load(MODEL))
        result = net.fit(images(60), labels(60), steps=3, train_batch=16)
        self.assertIn("Gemm", {n.op_type for n in net.model.nodes})
        self.assertTrue(result.float_layers)

    def test_qat_refuses(self):
        for config, words in (({"weight_bit": 4}, ["weight_bit", "weight_bits"]),
                              ({"window_size": 5}, ["window_size"]),
                              ({"weight_preprocess_type": "CLIP"}, ["PACT"])):
            self.assert_error("usage", words, lambda config=config: paddleslim.QAT(config))
        self.assert_error("usage", ["C++"], lambda: paddleslim.QAT(act_preprocess=object))

    def test_length_of_training(self):
        self.assertTrue(quench.train(MODEL, None, images(60), train_batch=32).seconds > 0)


if __name__ == "__main__":
    unittest.main()
