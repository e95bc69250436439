// SPDX-License-Identifier: Apache-2.0
// The steps of a quantisation that end with statistics.
#pragma once

#include "pipeline/quantize_job.h"

namespace quench {

/// At most `held_out` samples, and a fifth, judge. Both parts are whole runs of `batch` samples.
Split split(std::int64_t samples, std::int64_t held_out, std::int64_t batch);

/// How many samples bias correction reads: whole runs.
std::int64_t correction_samples(const Job& job, const QuantizeOptions& options);

/// Reads and prepares the model, plans, and opens the data.
Job start_job(const std::string& model_path, const QuantizeOptions& options,
              const Context& context);

/// Loads the engine and meanwhile reads samples that several steps will ask for.
void warm_up(const Job& job, const QuantizeOptions& options, const Context& context);

/// The note that `calibrate_model` leaves in files of statistics.
std::string statistics_note(const Job& job, const QuantizeOptions& options);

/// The statistics in files, as one; a file that is of another model than `origin` is an
/// Error(BadData).
StatisticMap read_statistics(const std::vector<std::string>& paths, const std::string& origin);

/// Fills `job.statistics` from files or by a pass over the data.
void gather(Job& job, const QuantizeOptions& options, const Context& context);

}  // namespace quench
