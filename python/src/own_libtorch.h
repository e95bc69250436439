// SPDX-License-Identifier: Apache-2.0
// Python's torch and the engine's libtorch in one process.
#pragma once

namespace quench::python {

/// Where a package torch is installed, loads the engine's libtorch as copies that share nothing
/// with it; once, before the engine is loaded. Otherwise, and where that fails, does nothing.
void keep_libtorch_apart();

}  // namespace quench::python
