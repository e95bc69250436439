// SPDX-License-Identifier: Apache-2.0
// What quantisation did to the channels of values, as the file's metadata tell: with it, values of
// the file can be held against those of the float model.
#pragma once

#include <map>

#include "tune/equalize.h"

namespace quench {

struct ChannelNotes {
  std::map<std::string, std::int64_t> padded;  ///< by value: the channels that it had
  std::vector<tune::ScaledValues> scaled;      ///< by what their channels were divided
};

/// Writes the notes on values of the float model into the metadata, in place of older ones.
void note_channels(Model& model, ChannelNotes notes, const Graph& float_graph);
/// The notes of a model. Text that is none is an Error(BadModel) that names the key.
ChannelNotes read_channel_notes(const Model& model);

/// Undoes what the notes tell.
class ChannelRestorer {
 public:
  /// The file is named where its values are not as its metadata tell.
  ChannelRestorer(const Model& model, std::string path);

  bool is_padded(const std::string& value) const { return notes_.padded.contains(value); }
  bool is_scaled(const std::string& value) const { return scaled_.contains(value); }
  /// The value as the float model has it. Error(BadModel) where it has other channels than noted.
  Tensor restored(const std::string& value, Tensor tensor) const;

 private:
  [[noreturn]] void fail_channels(const std::string& value, const Tensor& tensor,
                                  std::size_t noted) const;

  std::string path_;
  ChannelNotes notes_;
  std::map<std::string, std::size_t> scaled_;  ///< by value: its place in the notes
};

}  // namespace quench
