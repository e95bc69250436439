// SPDX-License-Identifier: Apache-2.0
// The settings of a job as JSON, and the place they have in a model's metadata.
#pragma once

#include "quench/model.h"
#include "quench/options.h"

namespace quench {

/// Keys of a model's metadata.
inline constexpr std::string_view kSettingsKey = "quench.settings";
inline constexpr std::string_view kSourceKey = "quench.source";
inline constexpr std::string_view kVersionKey = "quench.version";

/// Notes in the metadata how the model was made: the settings where they are to be stored, and
/// `source`, the fingerprint of the model that it was made from. What an earlier job noted is
/// replaced.
void note_origin(Model& model, const QuantizeOptions& options, std::string_view source);

namespace options {
/// Settings as JSON; `place` says where they stand, for errors.
QuantizeOptions parse_settings(std::string_view text, const std::string& place);
}  // namespace options

}  // namespace quench
