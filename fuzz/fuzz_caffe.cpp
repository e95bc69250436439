// SPDX-License-Identifier: Apache-2.0
// Fuzzes Caffe's readers: the text of a network and, behind the first zero byte, its weights.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/caffe/file.h"
#include "quench/error.h"
#include "quench/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint8_t* end = data + size;
  const std::uint8_t* middle = std::find(data, end, 0);
  const std::vector<std::uint8_t> text(data, middle);
  const std::vector<std::uint8_t> weights(middle == end ? end : middle + 1, end);
  try {
    (void)quench::dump(quench::caffe::read_bytes(std::as_bytes(std::span(text)),
                                                 std::as_bytes(std::span(weights))));
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
