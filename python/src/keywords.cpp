// SPDX-License-Identifier: Apache-2.0
// Keyword arguments: those of the table of options, and those that a function has of its own.
#include "python/src/keywords.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "python/src/samples.h"
#include "quench/given_samples.h"
#include "quench/nearest.h"

namespace quench::python {
namespace {

std::string key_of(const Option& option) {
  std::string key(option.name);
  std::ranges::replace(key, '-', '_');
  return key;
}

/// "section.key=value" without the section and the value.
std::string_view key_of_ini(const Option& option) {
  const std::string_view key = option.ini.substr(option.ini.find('.') + 1);
  return key.substr(0, key.find('='));
}

std::string text_of(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return py::cast<bool>(value) ? "true" : "false";
  if (is_path(value)) return to_path(value);
  return py::str(value);
}

std::string joined(const py::handle& values) {
  std::string text;
  for (const py::handle value : values) text += (text.empty() ? "" : ",") + text_of(value);
  return text;
}

/// A name as a word of a list, in which commas separate.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == ',' ? std::string("\\,") : std::string(1, c);
  return text;
}

bool is_sequence(const py::handle& value) {
  return !is_path(value) && PySequence_Check(value.ptr()) != 0;
}

/// The words that stand for the value on a command line.
std::vector<std::string> words_of(const Option& option, const py::handle& value) {
  std::vector<std::string> words;
  if (py::isinstance<py::dict>(value)) {
    for (const auto& [name, dims] : py::reinterpret_borrow<py::dict>(value)) {
      words.push_back(text_of(name) + "=" + joined(dims));
    }
    return words;
  }
  if (is_sequence(value)) {
    if (!option.many) return {joined(value)};
    const bool names = option.kind == OptionKind::List && option.value == "LIST";
    for (const py::handle each : value) {
      words.push_back(names ? escaped(text_of(each)) : text_of(each));
    }
    return words;
  }
  if (!option.bare.empty() && py::isinstance<py::bool_>(value)) {
    const bool none = std::ranges::find(option.choices, "none") != option.choices.end();
    if (py::cast<bool>(value)) return {std::string(option.bare)};
    if (none) return {"none"};
  }
  return {text_of(value)};
}

/// A range is two numbers, or one that is meant on both sides of zero.
Range to_range(const py::object& value, const std::string& name) {
  Range range;
  const bool two = is_sequence(value) && py::len(value) == 2;
  const py::object most = two ? py::object(value[py::int_(1)]) : value;
  const py::object least = two ? py::object(value[py::int_(0)]) : value;
  const bool numbers = PyNumber_Check(most.ptr()) != 0 && PyNumber_Check(least.ptr()) != 0;
  if (numbers) {
    range.max = py::cast<double>(py::float_(most));
    range.min = two ? py::cast<double>(py::float_(least)) : -range.max;
  }
  const bool finite = std::isfinite(range.min) && std::isfinite(range.max);
  if (numbers && finite && range.min <= range.max) return range;
  throw Error(ErrorKind::BadData,
              fmt::format("the observer '{}' gave {}; it must give two finite numbers, the smaller "
                          "first, or one for both sides of zero",
                          name, std::string(py::repr(value))));
}

/// Returns the name under which the configuration knows the callable.
std::string add_observer(QuantizeOptions& options, const py::object& observer, Call& call) {
  const std::string name =
      py::str(py::getattr(observer, "__name__", py::type::of(observer).attr("__name__")));
  options.config.custom_observers[name] = [&call, observer, name](const Statistic& statistic,
                                                                  const QuantSpec& spec) {
    return call.callback([&] {
      return to_range(observer(py::cast(statistic, py::return_value_policy::reference),
                               py::cast(spec, py::return_value_policy::reference)),
                      name);
    });
  };
  return name;
}

void refuse_rivals(const std::vector<const Option*>& given) {
  std::map<std::string_view, const Option*> first;
  for (const Option* option : given) {
    if (option->one_of.empty()) continue;
    const auto [found, added] = first.emplace(option->one_of, option);
    if (added) continue;
    throw Error(ErrorKind::Usage,
                fmt::format("give {} or {}, not both", key_of(*found->second), key_of(*option)));
  }
}

}  // namespace

Keywords::Keywords(const py::kwargs& given) {
  for (const auto& [name, value] : given) {
    if (!value.is_none()) given_[name] = value;
  }
}

py::object Keywords::take(const std::string& name) {
  own_.push_back(name);
  if (!given_.contains(name.c_str())) return py::none();
  return given_.attr("pop")(name);
}

std::string Keywords::take_text(const std::string& name, const std::string& by_default) {
  const py::object value = take(name);
  if (value.is_none()) return by_default;
  if (!is_path(value)) refuse(name, value);
  return to_path(value);
}

std::unique_ptr<Call> Keywords::take_call() {
  const auto threads = take_as<int>("threads", 0);
  constexpr int kMostThreads = 1024;
  if (threads < 0 || threads > kMostThreads) {
    throw Error(ErrorKind::Usage,
                fmt::format("threads is {}; expected 0 to {}", threads, kMostThreads));
  }
  const auto seed = take_as<std::uint64_t>("seed", 0);
  auto call = std::make_unique<Call>(threads, seed, take("progress"));
  call->run_on(take_text("device", "cpu"), take_text("precision", "float"),
               take_as<int>("max_memory_mb", 0));
  return call;
}

std::unique_ptr<Call> Keywords::take_shared_call() {
  const py::object distributed = take("distributed");
  auto call = take_call();
  call->share(distributed);
  return call;
}

void Keywords::refuse(const std::string& name, const py::object& value) {
  throw Error(ErrorKind::Usage, fmt::format("{} cannot be {}", name, std::string(py::repr(value))));
}

void Keywords::refuse_unknown(const std::string& name, unsigned job) const {
  std::vector<std::string> known = own_;
  for (const Option& option : all_options()) {
    if ((option.jobs & job) != 0) known.push_back(key_of(option));
  }
  std::string here = did_you_mean(name, known);
  for (const Option& option : all_options()) {  // what others call it
    const bool same = option.paddle == name || key_of_ini(option) == name;
    if (same && (option.jobs & job) != 0) here = fmt::format("; here it is '{}'", key_of(option));
  }
  throw Error(ErrorKind::Usage, fmt::format("there is no argument '{}'{}", name, here));
}

void Keywords::apply(QuantizeOptions& options, unsigned job, Call& call) {
  std::vector<const Option*> used;
  for (const Option& option : all_options()) {
    if ((option.jobs & job) == 0) continue;
    if (option.name == "data" || option.name == "labels") continue;  // the functions' own
    const py::object value = take(key_of(option));
    if (value.is_none()) continue;
    const bool off = option.alias && option.value.empty() && !py::cast<bool>(py::bool_(value));
    if (off) continue;  // as a flag that is not there
    used.push_back(&option);
    const bool observer = option.list == "observers" && PyCallable_Check(value.ptr()) != 0;
    if (observer && option.name != "activation-observer") {
      throw Error(ErrorKind::Usage,
                  fmt::format("a callable chooses ranges of activations; {} is a name, such as "
                              "'mse'",
                              key_of(option)));
    }
    set_option(
        options, option.name,
        observer ? std::vector{add_observer(options, value, call)} : words_of(option, value));
  }
  if (given_.size() > 0) {
    refuse_unknown(py::cast<std::string>(given_.attr("__iter__")().attr("__next__")()), job);
  }
  refuse_rivals(used);
  for (const Option* option : used) applied_.push_back(option->name);
}

void Keywords::expect_none() const {
  if (given_.size() == 0) return;
  refuse_unknown(py::cast<std::string>(given_.attr("__iter__")().attr("__next__")()), 0);
}

namespace {

/// Where what stands for a flag's value ends, as in "--labels FILE"; `at` where nothing does.
std::size_t skip_placeholder(const std::string& text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && std::isupper(static_cast<unsigned char>(text[end])) != 0) ++end;
  const bool whole = end == text.size() || std::isalnum(static_cast<unsigned char>(text[end])) == 0;
  return at < text.size() && text[at] == ' ' && end > at + 2 && whole ? end : at;
}

}  // namespace

std::string in_python(std::string text) {
  const std::string given = kGivenPath;
  for (std::size_t at = text.find(given); at != std::string::npos; at = text.find(given, at)) {
    text.replace(at, given.size(), "the given data");
  }
  std::vector<std::string> names = {"reference", "eval-data", "eval-labels", "at-least",
                                    "distributed"};
  for (const Option& option : all_options()) names.emplace_back(option.name);
  for (const std::string& name : names) {
    const std::string flag = "--" + name;
    for (std::size_t at = text.find(flag); at != std::string::npos; at = text.find(flag, at)) {
      const std::size_t end = at + flag.size();
      const bool whole =
          end == text.size() ||
          (std::isalnum(static_cast<unsigned char>(text[end])) == 0 && text[end] != '-');
      if (!whole) {
        at = end;
        continue;
      }
      std::string key = name;
      std::ranges::replace(key, '-', '_');
      const std::size_t behind = skip_placeholder(text, end);
      if (behind > end) key += '=';
      text.replace(at, behind - at, key);
    }
  }
  return text;
}

Dequantize dequantize_of(const std::string& word) {
  if (word == "at-load") return Dequantize::AtLoad;
  if (word == "on-the-fly") return Dequantize::OnTheFly;
  throw Error(ErrorKind::Usage,
              fmt::format("dequantize is '{}'; expected 'at-load' or 'on-the-fly'", word));
}

Rounding rounding_of(const std::string& word) {
  if (word == "once") return Rounding::Once;
  if (word == "twice") return Rounding::Twice;
  throw Error(ErrorKind::Usage, fmt::format("rounding is '{}'; expected 'once' or 'twice'", word));
}

std::string options_doc(unsigned job) {
  const QuantizeOptions defaults;
  std::string text;
  for (const Option& option : all_options()) {
    if ((option.jobs & job) == 0) continue;
    text += fmt::format("    {}: {}", key_of(option), in_python(std::string(option.help)));
    if (!option.choices.empty())
      text += fmt::format("; one of {}", fmt::join(option.choices, ", "));
    if (!option.list.empty()) text += fmt::format(" (see quench list {})", option.list);
    const std::string value = option_text(defaults, option.name);
    if (!value.empty() && !option.value.empty()) text += fmt::format(" [{}]", value);
    text += "\n";
  }
  return text;
}

py::list option_rows() {
  py::list rows;
  const QuantizeOptions defaults;
  for (const Option& option : all_options()) {
    if (option.jobs == 0) continue;
    py::dict row;
    row["name"] = key_of(option);
    row["help"] = std::string(option.help);
    row["choices"] = option.choices;
    row["jobs"] = option.jobs;
    row["kind"] = static_cast<int>(option.kind);
    row["switch"] = option.value.empty();
    row["many"] = option.many;
    row["observer"] = option.name == "activation-observer";
    row["default"] = option_text(defaults, option.name);
    rows.append(row);
  }
  return rows;
}

}  // namespace quench::python
