// SPDX-License-Identifier: Apache-2.0
// Operators that PIR has several of, or in another form.
#pragma once

#include "formats/paddle/program.h"

namespace quench::paddle::write {

/// An operator of a program as the one that PIR has for it.
OpItem normal(OpItem op);

}  // namespace quench::paddle::write
