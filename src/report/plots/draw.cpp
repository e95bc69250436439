// SPDX-License-Identifier: Apache-2.0
// Draws plots with cairo: A4 pages on their side, vector graphics, names in full.
#include <cairo/cairo-pdf.h>
#include <cairo/cairo.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/format.h"
#include "report/plots.h"
#include "report/statistics_table.h"

namespace quench::report {
namespace {

constexpr double kWidth = 842;
constexpr double kHeight = 595;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 40;
constexpr double kNameRoom = 230;
constexpr std::size_t kBoxesAPage = 20;
constexpr std::size_t kBars = 50;
constexpr double kSmallType = 7;

/// cairo stops drawing at the first byte that is not UTF-8.
std::string printable(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    std::size_t length = c < 0x80 ? 1 : (c >= 0xC2 && c < 0xE0) ? 2 : (c & 0xF0U) == 0xE0 ? 3 : 0;
    if (c >= 0xF0 && c < 0xF5) length = 4;
    bool good = length > 0 && i + length <= text.size() && c >= ' ' && c != 0x7f;
    for (std::size_t k = 1; good && k < length; ++k) {
      good = (static_cast<unsigned char>(text[i + k]) & 0xC0U) == 0x80;
    }
    result += good ? text.substr(i, length) : "?";
    i += good ? length : 1;
  }
  return result;
}

/// A PDF file under construction.
class Page {
 public:
  explicit Page(const std::string& path)
      : surface_(cairo_pdf_surface_create(path.c_str(), kWidth, kHeight)),
        cr_(cairo_create(surface_)) {
    cairo_select_font_face(cr_, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  }
  ~Page() {
    cairo_destroy(cr_);
    cairo_surface_destroy(surface_);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  void text(double x, double y, const std::string& words, double size = kSmallType) {
    cairo_set_font_size(cr_, size);
    cairo_move_to(cr_, x, y);
    cairo_show_text(cr_, printable(words).c_str());
  }
  void text_right(double x, double y, const std::string& words) {
    cairo_set_font_size(cr_, kSmallType);
    cairo_text_extents_t extents;
    cairo_text_extents(cr_, printable(words).c_str(), &extents);
    text(x - extents.width, y, words);
  }
  /// Downwards from (x, y); a long name goes on in lines beside the first.
  void name_below(double x, double y, const std::string& name) {
    constexpr std::size_t kLine = 55;
    for (std::size_t at = 0, line = 0; at < name.size(); at += kLine, ++line) {
      cairo_save(cr_);
      cairo_move_to(cr_, x - 2 + static_cast<double>(line) * (kSmallType + 1), y);
      cairo_rotate(cr_, std::numbers::pi / 2);
      cairo_set_font_size(cr_, kSmallType);
      cairo_show_text(cr_, printable(name.substr(at, kLine)).c_str());
      cairo_restore(cr_);
    }
  }
  void line(double x0, double y0, double x1, double y1, double grey = 0) {
    cairo_set_source_rgb(cr_, grey, grey, grey);
    cairo_set_line_width(cr_, 0.6);
    cairo_move_to(cr_, x0, y0);
    cairo_line_to(cr_, x1, y1);
    cairo_stroke(cr_);
    cairo_set_source_rgb(cr_, 0, 0, 0);
  }
  void box(double x, double y, double width, double height) {
    cairo_rectangle(cr_, x, y, width, height);
    cairo_set_source_rgb(cr_, 0.55, 0.70, 0.88);
    cairo_fill_preserve(cr_);
    cairo_set_source_rgb(cr_, 0, 0, 0);
    cairo_set_line_width(cr_, 0.5);
    cairo_stroke(cr_);
  }
  void next() { cairo_show_page(cr_); }
  void finish() {
    cairo_surface_finish(surface_);
    const cairo_status_t status = cairo_surface_status(surface_);
    if (status != CAIRO_STATUS_SUCCESS) {
      fail(ErrorKind::Io, "a plot cannot be written: {}", cairo_status_to_string(status));
    }
  }

 private:
  cairo_surface_t* surface_;
  cairo_t* cr_;
};

/// Maps values to heights on the page.
struct Scale {
  double low = 0;
  double high = 1;
  double top = kTop;
  double bottom = kHeight - kNameRoom;
  double linear = 0;  ///< below this size linear, beyond logarithmic; 0: linear all over
  double along(double value) const { return linear > 0 ? std::asinh(value / linear) : value; }
  double at(double value) const {
    const double range = along(high) - along(low);
    return bottom - (bottom - top) * (along(value) - along(low)) / (range > 0 ? range : 1);
  }
};

/// Under one linear scale a tensor that is much smaller than the largest is a line. The smallest
/// boxes of a page say where the linear part ends.
double linear_part(const std::vector<Plotted>& tensors, double largest) {
  constexpr double kMuch = 20;
  constexpr double kLeast = 1e-6;
  std::vector<double> heights;
  for (const Plotted& each : tensors) {
    const double height = quantile(*each.statistic, 0.75) - quantile(*each.statistic, 0.25);
    if (height > 0) heights.push_back(height);
  }
  if (heights.empty()) return 0;
  const auto small = heights.begin() + static_cast<std::ptrdiff_t>(heights.size() / 10);
  std::ranges::nth_element(heights, small);
  return largest > kMuch * *small ? std::max(*small, kLeast * largest) : 0;
}

std::vector<double> ticks_of(const Scale& scale) {
  constexpr int kTicks = 8;
  std::vector<double> ticks;
  if (scale.linear <= 0) {
    for (int i = 0; i <= kTicks; ++i) {
      ticks.push_back(scale.low + (scale.high - scale.low) * i / kTicks);
    }
    return ticks;
  }
  ticks = {scale.low, 0, scale.high};
  const double largest = std::max(-scale.low, scale.high);
  constexpr double kNear = 0.7;  // of the largest: the end of the axis has its own label
  for (double size = std::pow(10, std::ceil(std::log10(scale.linear))); size < kNear * largest;
       size *= 10) {
    if (size < kNear * scale.high) ticks.push_back(size);
    if (-size > kNear * scale.low) ticks.push_back(-size);
  }
  return ticks;
}

void draw_axis(Page& page, const Scale& scale) {
  for (const double value : ticks_of(scale)) {
    page.line(kLeft, scale.at(value), kWidth - kRight, scale.at(value), 0.85);
    page.text_right(kLeft - 6, scale.at(value) + 2, format("{:.4g}", value));
  }
  page.line(kLeft, scale.top, kLeft, scale.bottom);
}

void draw_box(Page& page, const Scale& scale, double x, double width, const Statistic& seen) {
  const double q1 = quantile(seen, 0.25);
  const double q3 = quantile(seen, 0.75);
  const double reach = 1.5 * (q3 - q1);
  const double low = std::max(seen.min, q1 - reach);
  const double high = std::min(seen.max, q3 + reach);
  const double middle = x + width / 2;
  page.line(middle, scale.at(low), middle, scale.at(high));
  page.line(x + width * 0.3, scale.at(low), x + width * 0.7, scale.at(low));
  page.line(x + width * 0.3, scale.at(high), x + width * 0.7, scale.at(high));
  page.box(x, scale.at(q3), width, std::max(0.3, scale.at(q1) - scale.at(q3)));
  page.line(x, scale.at(quantile(seen, 0.5)), x + width, scale.at(quantile(seen, 0.5)));
  for (const double end : {seen.min, seen.max}) {  // the extremes, as small crosses
    page.line(middle - 2, scale.at(end) - 2, middle + 2, scale.at(end) + 2, 0.4);
    page.line(middle - 2, scale.at(end) + 2, middle + 2, scale.at(end) - 2, 0.4);
  }
}

void draw_bars(Page& page, const Plotted& tensor) {
  const std::vector<double> bars = shares(*tensor.statistic, kBars);
  Scale scale{.high = std::max(1e-9, *std::ranges::max_element(bars)), .bottom = kHeight - 60};
  draw_axis(page, scale);
  const double width = (kWidth - kRight - kLeft) / static_cast<double>(bars.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double x = kLeft + width * static_cast<double>(i);
    page.box(x, scale.at(bars[i]), width, scale.bottom - scale.at(bars[i]));
  }
  page.text(kLeft, kHeight - 45, format("{:.6g}", tensor.statistic->min));
  page.text_right(kWidth - kRight, kHeight - 45, format("{:.6g}", tensor.statistic->max));
  page.text(kLeft, kHeight - 30,
            format("{} values, share of each of {} bins", tensor.statistic->count, kBars));
}

/// A title that is too long for a line goes on below.
void draw_title(Page& page, const std::string& title) {
  constexpr std::size_t kLine = 130;
  double y = 14;
  for (std::size_t at = 0; at < title.size() && y < kTop; at += kLine, y += 10) {
    page.text(kLeft, y, title.substr(at, kLine), 9);
  }
}

}  // namespace
}  // namespace quench::report

extern "C" __attribute__((visibility("default"))) void quench_draw_boxes(
    const std::vector<quench::report::Plotted>& tensors, const std::string& title,
    const std::string& path) {
  using namespace quench::report;  // NOLINT(google-build-using-namespace): the room's own names
  Page page(path);
  Scale scale{.high = 0};
  for (const Plotted& each : tensors) {
    scale.low = std::min(scale.low, each.statistic->min);
    scale.high = std::max(scale.high, each.statistic->max);
  }
  scale.linear = linear_part(tensors, std::max(-scale.low, scale.high));
  const std::string axis = scale.linear > 0 ? ", logarithmic axis" : "";
  const double pitch = (kWidth - kRight - kLeft) / static_cast<double>(kBoxesAPage);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t place = i % kBoxesAPage;
    if (place == 0) {
      if (i > 0) page.next();
      draw_title(page, quench::format("{}{}, page {} of {}", title, axis, i / kBoxesAPage + 1,
                                      (tensors.size() + kBoxesAPage - 1) / kBoxesAPage));
      draw_axis(page, scale);
    }
    const double x = kLeft + pitch * (static_cast<double>(place) + 0.25);
    draw_box(page, scale, x, pitch * 0.5, *tensors[i].statistic);
    page.name_below(x + pitch * 0.25, scale.bottom + 8, tensors[i].name);
  }
  page.next();
  page.finish();
}

extern "C" __attribute__((visibility("default"))) void quench_draw_bars(
    const std::vector<quench::report::Plotted>& tensors, const std::string& title,
    const std::string& path) {
  using namespace quench::report;  // NOLINT(google-build-using-namespace): the room's own names
  Page page(path);
  for (const Plotted& each : tensors) {
    draw_title(page, title + ": " + each.name);
    draw_bars(page, each);
    page.next();
  }
  page.finish();
}
