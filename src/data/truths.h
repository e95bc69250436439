// SPDX-License-Identifier: Apache-2.0
// The kinds of labels that are more than a class.
#pragma once

#include <string_view>

#include "data/column.h"
#include "data/labels.h"

namespace quench::data {

/// Whether a line is "name x1,y1,x2,y2,class ..."; the name alone is an image without boxes.
bool is_box_line(std::string_view line);
/// Lines of boxes.
Labels boxes_from_lines(const std::string& path, std::string_view text);
/// Lines of "name TAB text", or of texts in order; `characters` is a file of one a line. Class 0 is
/// the blank, 1 the first line, and the one behind the last the space.
Labels texts_from_lines(const std::string& path, std::string_view text,
                        const std::string& characters);
/// Boxes [N,count,5] or masks [N,H,W] in the order of the samples.
Labels from_array(const Tensor& tensor, const std::string& path);

/// A folder of masks, named as the samples are, with another extension: 8-bit gray PNG or PGM whose
/// values are classes, 255 where nothing is asked. They are resized and cropped as the images are.
std::shared_ptr<const Truths> masks_of(const std::string& folder, const Column& samples,
                                       const ImageOptions& image, const Context& context);

}  // namespace quench::data
