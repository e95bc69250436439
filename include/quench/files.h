// SPDX-License-Identifier: Apache-2.0
// The files of a job: what it reads must not be what it writes, and what it writes appears
// together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace quench {

class Staged;

/// The files that a job writes: named before the work, kept aside while it lasts, put in place by
/// `commit`. Without it, nothing is replaced and nothing is left.
class Outputs {
 public:
  Outputs();
  ~Outputs();
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  /// A file that the job reads; `what` names it in messages, as in "the labels". A path that is
  /// empty or leads nowhere is passed over.
  void reads(const std::string& path, const std::string& what);
  /// A folder of which the job reads those files whose names `is_read` knows.
  void reads_folder(const std::string& path, const std::string& what,
                    std::function<bool(const std::string& name)> is_read);
  /// A file that the job will write. Throws Error(Usage) where the job reads it, or writes
  /// something else there, and Error(Io) where it cannot be written.
  void writes(const std::string& path, const std::string& what);
  /// As `writes`, for a file that may come to be written: whether it can be is not tried.
  void may_write(const std::string& path, const std::string& what);
  /// Another process writes (a rank of the same job): from now on no path is tried, and nothing is
  /// put in place.
  void keep_nothing() noexcept;

  /// A file that is written, but does not have its name yet. Returns its bytes.
  std::uint64_t add(std::unique_ptr<Staged> file);
  /// A file that goes when the others come.
  void removes(const std::string& path);
  /// Gives every file its name.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes a text to `path` when `outputs` commits.
void write_text(const std::string& path, std::string_view text, Outputs& outputs);

/// The mapped file that an address lies in, or null. Weights are used where they lie in their
/// file: if another program cuts that file off meanwhile, the system sends SIGBUS. The library
/// installs no handler of its own; a program's handler may call this to say which file it was.
const char* mapped_file_at(const void* address) noexcept;

}  // namespace quench
