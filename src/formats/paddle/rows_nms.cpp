// SPDX-License-Identifier: Apache-2.0
// Paddle's multiclass non-maximum suppression.
#include "formats/paddle/rows_nms.h"

#include "base/format.h"
#include "formats/suppression.h"

namespace quench::paddle {

void read_multiclass_nms(Op& op) {
  if (op.need_rank("Scores") != 3) {
    fail(ErrorKind::Unsupported, "its scores are not of images, classes and boxes");
  }
  if (op.real("nms_eta") != 1) fail(ErrorKind::Unsupported, "its threshold changes (nms_eta)");
  const SuppressionSettings how{.background = op.integer("background_label"),
                                .candidates = op.integer("nms_top_k"),
                                .most = op.integer("keep_top_k"),
                                .overlap = op.real("nms_threshold"),
                                .score = op.real("score_threshold"),
                                .pixels = !op.flag("normalized")};
  const Suppressed left = Suppression(op, op.in("BBoxes"), op.in("Scores"), how).run();
  op.set("Out", op.node("Concat", {op.cast(left.label, DType::Float32), left.score, left.box},
                        {{"axis", std::int64_t{1}}}));
  if (op.makes("Index")) {
    op.set("Index",
           op.node("Cast", {left.number}, {{"to", static_cast<std::int64_t>(DType::Int32)}}));
  }
  if (op.makes("NmsRoisNum")) op.set("NmsRoisNum", op.cast(left.of_image, DType::Int32));
}

}  // namespace quench::paddle
