// SPDX-License-Identifier: Apache-2.0
// A program as PIR's JSON.
#pragma once

#include "formats/paddle/write/pir_original.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {

/// Throws Error(Unsupported) that lists all operators whose form in PIR is not known. `original`:
/// what the operators of the program that have `kPirPlace` are taken from. Parameters may get
/// another shape.
std::string to_pir(Written& written, const std::optional<PirOriginal>& original);

}  // namespace quench::paddle::write
