// SPDX-License-Identifier: Apache-2.0
// --data and everything that says how samples are prepared.
#include "cli/data_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

#include "cli/parse.h"

namespace quench::cli {
namespace {

void add_source_flags(CLI::App& app, DataFlags& flags) {
  app.add_option("--data", flags.path,
                 "Folder of images or .bin files, .npy, .npz, IDX or CIFAR file; or "
                 "INPUT:PATH,INPUT:PATH")
      ->type_name("PATH");
  app.add_option("--labels", flags.labels, "File of 'name index' lines, .npy or IDX")
      ->type_name("FILE");
  app.add_option("--limit", flags.limit, "Use the first N samples")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--data-config", flags.config,
                 "INI file with a [data_preprocess_param] section; flags override it")
      ->type_name("INI");
}

void add_image_flags(CLI::App& app, DataFlags& flags) {
  const char* group = "Images";
  app.add_option("--color", flags.color, "RGB, BGR or GRAY")
      ->check(CLI::IsMember({"RGB", "BGR", "GRAY"}, CLI::ignore_case))
      ->type_name("ORDER")
      ->group(group);
  CLI::Option* exact = app.add_option("--resize", flags.resize, "Resize to exactly W,H");
  CLI::Option* shorter = app.add_option("--resize-shorter", flags.resize_shorter,
                                        "Resize the shorter side to N, keeping the ratio");
  CLI::Option* fit = app.add_option("--resize-fit", flags.resize_fit,
                                    "Resize to height H keeping the ratio, pad to width W");
  exact->type_name("W,H")->group(group)->excludes(shorter)->excludes(fit);
  shorter->type_name("N")->group(group)->check(CLI::PositiveNumber)->excludes(fit);
  fit->type_name("W,H")->group(group);
  app.add_option("--resize-method", flags.method, "LINEAR, NEAREST or CUBIC")
      ->check(CLI::IsMember({"LINEAR", "NEAREST", "CUBIC"}, CLI::ignore_case))
      ->type_name("METHOD")
      ->group(group);
  app.add_option("--center-crop", flags.center_crop, "Keep the middle W,H")
      ->type_name("W,H")
      ->group(group);
  app.add_option("--mean", flags.mean, "Subtracted, one a channel, on the 0..255 scale")
      ->type_name("A,B,C")
      ->group(group);
  app.add_option("--std", flags.std, "Divided by, one a channel, on the 0..255 scale")
      ->type_name("A,B,C")
      ->group(group);
  app.add_flag("--normalize-first", flags.normalize_first,
               "Apply mean and std before resizing and cropping")
      ->group(group);
}

ColorOrder to_color(const std::string& name) {
  if (name == "BGR") return ColorOrder::Bgr;
  return name == "GRAY" ? ColorOrder::Gray : ColorOrder::Rgb;
}

ResizeMethod to_method(const std::string& name) {
  if (name == "NEAREST") return ResizeMethod::Nearest;
  return name == "CUBIC" ? ResizeMethod::Cubic : ResizeMethod::Linear;
}

void apply_resize(const DataFlags& flags, ImageOptions& image) {
  if (!flags.resize && !flags.resize_shorter && !flags.resize_fit) return;
  // One way to resize replaces whatever the INI file says.
  image.resize.reset();
  image.resize_fit.reset();
  image.resize_shorter = flags.resize_shorter;
  if (flags.resize) image.resize = parse_size("--resize", *flags.resize);
  if (flags.resize_fit) image.resize_fit = parse_size("--resize-fit", *flags.resize_fit);
}

}  // namespace

void add_data_flags(CLI::App& app, DataFlags& flags) {
  add_source_flags(app, flags);
  add_image_flags(app, flags);
}

DataOptions data_options(const DataFlags& flags, DataOptions base) {
  DataOptions options = std::move(base);
  if (!flags.config.empty()) options = read_data_section(flags.config);
  if (flags.path) options.path = *flags.path;
  if (flags.labels) options.labels = *flags.labels;
  if (flags.limit) options.limit = *flags.limit;
  ImageOptions& image = options.image;
  if (flags.color) image.color = to_color(*flags.color);
  apply_resize(flags, image);
  if (flags.method) image.method = to_method(*flags.method);
  if (flags.center_crop) image.center_crop = parse_size("--center-crop", *flags.center_crop);
  if (flags.mean) image.mean = parse_numbers("--mean", *flags.mean);
  if (flags.std) image.std = parse_numbers("--std", *flags.std);
  if (flags.normalize_first) image.normalize = NormalizeOrder::First;
  return options;
}

}  // namespace quench::cli
