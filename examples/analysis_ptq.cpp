// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's AnalysisPTQ with a metric of one's own. Arguments: the folder of the data, a folder
#include "fashion_samples.h"
#include "quench/paddleslim.h"

namespace {

void run(const std::string& folder, const std::string& out) {
  quench::AnalysisPtqOptions options;
  options.model_dir = folder;
  options.model_filename = "fashion.onnx";
  options.data_loader = fashion::samples(folder, 40);
  options.save_dir = out;
  const quench::AnalysisPTQ analysis(options);

  const quench::SensitivityResult ranking = analysis.metric_error_analyse();
  std::cout << "worst layer: " << ranking.layers.front().layer << "\n";
  const quench::StatisticsResult statistics = analysis.statistical_analyse();
  std::cout << statistics.layers << " layers drawn\n";

  // Any function of the quantised model will do; here, that at least one node quantises.
  options.eval_function = [](const quench::Model& quantized) {
    double count = 0;
    for (const quench::Node& node : quantized.graph.nodes) {
      count += node.op_type == "QuantizeLinear" ? 1 : 0;
    }
    return count;
  };
  const quench::TargetResult target = quench::AnalysisPTQ(options).get_target_quant_model(1);
  std::cout << "target " << (target.met ? "met" : "missed") << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  return fashion::run_example(argc, argv, "analysis_ptq DATA_FOLDER OUT_FOLDER", run);
}
