// SPDX-License-Identifier: Apache-2.0
// Feeds the files of some folders to a fuzzing harness, one after the other, without libFuzzer.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

long peak_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

}  // namespace

int main(int argc, char** argv) {
  // What no file of this size can justify; the engine and a sanitizer take their part of it.
  constexpr long kMaxMb = 1024;
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::string& path : files_in(argv[i])) {
      std::printf("%s\n", path.c_str());
      std::fflush(stdout);  // the last line names the culprit of a crash
      std::ifstream file(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++count;
      if (peak_mb() > kMaxMb) {
        std::fprintf(stderr, "%s: took %ld MB\n", path.c_str(), peak_mb());
        return 1;
      }
    }
  }
  std::printf("%zu inputs replayed\n", count);
  return count == 0 ? 77 : 0;
}
