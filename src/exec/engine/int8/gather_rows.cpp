// SPDX-License-Identifier: Apache-2.0
// Rows of a table of bytes as floats.
#include "exec/engine/int8/bytes.h"
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

/// Inputs table, indices, scales and zero points of the table's rows.
void gather_rows(Call& call) {
  const at::Tensor table = call.in(GatherRowsNode::kTable).contiguous();
  const at::Tensor& given = call.in(GatherRowsNode::kIndices);
  const at::Tensor indices = wrap_indices(given, table.size(0)).contiguous();
  const at::Tensor scales = call.in(GatherRowsNode::kScales).contiguous();
  const at::Tensor zeros = call.has(GatherRowsNode::kZeros)
                               ? call.in(GatherRowsNode::kZeros).contiguous()
                               : at::Tensor();
  const std::int64_t columns = table.size(1);
  Ints shape = indices.sizes().vec();
  shape.push_back(columns);
  at::Tensor dst = new_tensor(shape, at::kFloat, at::MemoryFormat::Contiguous);
  const auto* rows = indices.data_ptr<std::int64_t>();
  const float* scale = scales.data_ptr<float>();
  const std::uint8_t flip = table.scalar_type() == at::kChar ? 0x80 : 0;
  float* to = dst.data_ptr<float>();
  share(0, indices.numel(),
        std::max<std::int64_t>(kByteGrain / std::max<std::int64_t>(columns, 1), 1),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::uint8_t zero = zeros.defined() ? bytes_of(zeros)[rows[i]] : 0;
            dequantize_loop(bytes_of(table) + rows[i] * columns, flip,
                            static_cast<float>(zero ^ flip), scale[rows[i]], to + i * columns,
                            columns);
          }
        });
  call.set(0, std::move(dst));
}

Kernel make_gather_rows(const OpContext&) { return sharing(gather_rows); }

}  // namespace

KernelInfo kernel_GatherRows() { return {.make = make_gather_rows}; }

}  // namespace quench::exec
