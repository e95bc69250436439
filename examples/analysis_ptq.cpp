// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's AnalysisPTQ with a metric of one's own: which layer costs answers, and which model
// keeps a share of them. OUT is a folder.
#include "example.h"
#include "quench/paddleslim.h"

namespace {

std::size_t answer(const quench::TensorMap& outputs) {
  const auto scores = outputs.begin()->second.data<float>();
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

/// Percent of the samples to which a model gives the same answer as the float model.
class Agreement {
 public:
  Agreement(const std::string& model, const quench::DataOptions& data)
      : session_(quench::load(model)), source_(quench::open_data(data, session_.inputs())) {}

  double operator()(const quench::Model& quantised) {
    quench::Session session(quantised);
    std::int64_t same = 0;
    for (std::int64_t i = 0; i < source_->size(); ++i) {
      const quench::TensorMap inputs = source_->read(i).inputs;
      same += answer(session.run(inputs)) == answer(session_.run(inputs)) ? 1 : 0;
    }
    return 100.0 * static_cast<double>(same) / static_cast<double>(source_->size());
  }

 private:
  quench::Session session_;
  std::unique_ptr<quench::SampleSource> source_;
};

void run(const example::Arguments& given) {
  const auto agreement = std::make_shared<Agreement>(given.model, example::samples(given.data, 20));
  quench::AnalysisPtqOptions options;
  options.model_dir = given.model;
  options.data_loader = example::samples(given.data, 40);
  options.eval_function = [agreement](const quench::Model& model) { return (*agreement)(model); };
  options.save_dir = given.out;
  options.ptq_config.algo = "avg";
  options.ptq_config.batch_size = 4;
  options.ptq_config.batch_nums = 10;

  const quench::AnalysisPTQ analysis(options);
  const quench::SensitivityResult ranking = analysis.metric_error_analyse();
  std::cout << "worst layer: " << ranking.layers.front().layer << "\n";

  const quench::StatisticsResult statistics = analysis.statistical_analyse();
  std::cout << statistics.layers << " layers drawn\n";

  const quench::TargetResult target = analysis.get_target_quant_model(90);
  std::cout << "target " << (target.met ? "met" : "missed") << "\n";
}

}  // namespace

int main(int argc, char** argv) { return example::run_example(argc, argv, "analysis_ptq", run); }
