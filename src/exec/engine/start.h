// SPDX-License-Identifier: Apache-2.0
// What concerns the whole process, not one session.
#pragma once

namespace quench::exec {

/// Once, before the first session is made: libtorch allocates through our pool, and oneDNN keeps to
/// the cap on instruction sets. Sessions change nothing that others see.
void start_engine();

/// Whether products of bytes do not saturate in between: the processor has VNNI and the cap on
/// instruction sets allows it. Elsewhere oneDNN's integer kernels may saturate 16-bit sums, and
/// exact float kernels run instead.
bool multiplies_bytes_exactly();

}  // namespace quench::exec
