// SPDX-License-Identifier: Apache-2.0
// One quantisation: prepare, plan, collect, solve, tune, lower, evaluate. Every command is a way of
// calling these steps; what is shown to the user is rendered from what they left here.
#pragma once

#include "quench/analysis.h"
#include "quench/files.h"
#include "quench/lower.h"
#include "retarget/edges.h"
#include "tune/state.h"

namespace quench::job {

/// What the steps found. Each step fills its part and reads those of the steps before it.
struct Job : tune::State {
  Job(std::string path, QuantizeOptions the_options, const Context& the_context)
      : State(std::move(the_options), the_context), model_path(std::move(path)) {}

  std::string model_path;
  std::string out_path;  ///< where the result goes, which must be able to hold it; "": nowhere
  std::string origin;    ///< fingerprint of the model as it was read
  /// Statistics are collected of whatever the plan of some of the layers would observe.
  bool observes_any_choice = false;
  bool doubted = false;  ///< samples are raw pixels, which the first layer was not trained on
  Model quantized;       ///< lowered, with the channels and operators of the float model
  Model written;         ///< as the file holds it
  std::optional<TargetTrials> target;           ///< of the search that led to this job
  std::vector<retargeting::IntegerEdge> edges;  ///< inputs and outputs of `written` on integers

  /// Whether activations are quantised with calibration data.
  bool is_full() const {
    return options.type == QuantType::Full || options.type == QuantType::None;
  }
};

/// Reads the model and brings it into the form that is quantised.
void prepare(Job& job);
/// Throws where the file that the result goes to could not hold it: before the work, not behind it.
void expect_out_fits(const Job& job);
/// Decides for every node, value and weight what becomes of it; refuses a model of which nothing
/// would change. Opens the samples.
void plan(Job& job);
/// Loads the engine and runs the float model on the validation set.
void start_validation(Job& job);
/// A sentence where samples are raw pixels and the model expects otherwise.
std::optional<std::string> doubt_samples(Job& job);
/// The statistics of activations: from files, or by a pass over the calibration set.
void collect(Job& job);
/// Scales and zero points, and what the target's kernels need of them.
void solve(Job& job);
/// Writes integers and their operators into the graph.
void lower(Job& job);
/// Holds the written model against the float one.
void evaluate(Job& job);

/// The steps between `plan` and `lower`, with the techniques that have their turns among them.
void calibrate_and_tune(Job& job);
/// All steps.
void run(Job& job);

/// The values whose quantisation parameters come from statistics.
std::vector<std::string> values_to_observe(const Job& job);
/// The statistics in files, as one; a file that is of another model than `origin` is an
/// Error(BadData).
StatisticMap read_statistics(const std::vector<std::string>& paths, const std::string& origin);
/// The note that `calibrate_model` leaves in files of statistics of so many samples.
std::string statistics_note(const Job& job, std::int64_t samples);

/// Saves what the job made, with the tables and the page that the options ask for.
void write(Job& job, const std::string& out_path, Outputs& outputs);

/// A model that was read, in the form that a type of quantisation works on.
Model prepare_for(Model model, QuantType type);
/// Infers types, and warns of shapes that the file declares otherwise.
void infer_and_warn(Model& model, const Context& context);
/// The plan of a prepared model, which is lifted to the operator version that the plan needs.
QuantPlan make_final_plan(Model& model, const QuantConfig& config);
/// Counts what runs on integers in the written model, as `lint` sees it, and lists what does not:
/// with the reason of the plan of the `prepared` model, or that of `lint` where the plan meant it
/// for integers.
void note_decisions(const Model& prepared, const QuantPlan& plan, const Model& written,
                    QuantizeReport& report);
/// The static part of a model as it will be in the file: channels padded, operators of the form.
Model as_written(const Model& quantized, const QuantizeOptions& options, PaddedChannels& padded);

}  // namespace quench::job
