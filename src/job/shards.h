// SPDX-License-Identifier: Apache-2.0
// A job whose model is one part of a model that several processes hold together.
#pragma once

#include <string>

#include "job/job.h"

namespace quench::job {

/// Before the work, where the context has shards: all are asked for the same, nothing that needs
/// whole layers is done, and no two write the same file.
void start_shards(Job& job, const std::string& out_path);
/// Behind `prepare`: what is split is split on every one of them, and nothing else.
void check_shards(const Job& job);
/// Behind the work: nobody writes unless all have come so far.
void meet_shards(const Job& job);

}  // namespace quench::job
