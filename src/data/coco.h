// SPDX-License-Identifier: Apache-2.0
// Boxes as COCO's annotation files hold them.
#pragma once

#include <string>

#include "data/labels.h"

namespace quench::data {

/// Reads `images`, `annotations` and `categories`. Classes are numbered from 0 in the order of the
/// categories' ids, as detectors number them; crowds are left out. Throws Error(BadData) that names
/// the file and the entry.
Labels read_coco(const std::string& path);

}  // namespace quench::data
