// SPDX-License-Identifier: Apache-2.0
// zstd over whole byte strings.
#pragma once

#include <cstdint>
#include <string>

#include "formats/packed/bytes.h"

namespace quench::packed {

std::string zstd_compress(Bytes bytes, int level);
/// The bytes, which must be `size`; throws Error(BadModel) where they are not.
std::string zstd_decompress(Bytes bytes, std::uint64_t size);

}  // namespace quench::packed
