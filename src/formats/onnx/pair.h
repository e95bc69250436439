// SPDX-License-Identifier: Apache-2.0
// A model and its data file, which take the place of an older pair.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/file.h"

namespace quench::onnx {

/// Two files cannot be renamed at once, and a model with another's data is worse than none. So the
/// model is replaced twice, and the data files never change under a model that names them:
///
///   1. the new data lie beside the model under a temporary name;
///   2. a model that names this temporary file replaces the old one;
///   3. the new data get their own name, too (a second link);
///   4. a model that names this file replaces the one of step 2;
///   5. the temporary name goes.
///
/// Whenever the process is killed, the model that stands there has its own data. What is then left
/// over is removed by the next who writes there.
///
/// The data file is `<path>.data`. Where such a file exists and the old model does not name it, it
/// belongs to somebody else, and `<path>.1.data` is taken, and so on. Where a file system has no
/// links, the data get the first name that is free, and the old data go when the model has come.
class StagedPair final : public Staged {
 public:
  using Write = std::function<void(AtomicFile& file)>;
  /// Writes a model whose data file has a name; so far it can be read at another path.
  using WriteModel = std::function<void(AtomicFile& file, const std::string& location,
                                        const std::string& data_path)>;

  StagedPair(const std::string& path, const Write& write_data, const WriteModel& write_model);

  const std::string& path() const noexcept override { return path_; }
  void finish() override;
  std::uint64_t size() const noexcept override { return size_; }
  void commit() override;

  /// The steps of `commit`, one by one, so that tests can stop between them.
  static constexpr int kSteps = 4;
  void step(int number);

 private:
  void step_without_links(int number);

  std::string path_;
  std::string own_;         ///< the data file of the old model, or ""
  std::string final_path_;  ///< of the data
  /// A second name of the data, which goes unless it becomes the final one.
  struct SecondName {
    std::string name;
    ~SecondName();
  };
  std::uint64_t size_ = 0;
  std::optional<AtomicFile> data_;
  SecondName second_;
  std::optional<AtomicFile> first_;  ///< names the temporary data file
  std::optional<AtomicFile> last_;
};

/// The data file that saving a model at `path` replaces; empty: none.
std::string own_data_file(const std::string& path, const std::set<std::string>& locations);
/// The same, unless another model in the folder names it too.
std::string unshared_data_file(const std::string& path, const std::set<std::string>& locations);

}  // namespace quench::onnx
