// SPDX-License-Identifier: Apache-2.0
// From PIR's JSON to a program in the names of older programs, by the same table of operators.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "formats/paddle/pir_json.h"
#include "formats/paddle/program.h"
#include "formats/paddle/rows.h"

namespace quench::paddle {
namespace {

constexpr std::int64_t kNewestVersion = 4;
constexpr int kMaxDepth = 32;

/// The names in a row's list: of inputs, those that PIR has.
std::vector<std::string> names_of(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string_view token : parts_of(list.substr(0, list.find('/')), ' ')) {
    names.emplace_back(token.substr(0, token.find(':')));
  }
  return names;
}

/// Operators that write into one of their operands, which goes on under its own number. Others that
/// work in place are the last to read what they change.
std::optional<std::size_t> written_operand(std::string_view name) {
  if (name == "array_write_" || name == "increment_") return 0;
  if (name == "assign_out_") return 1;
  return std::nullopt;
}

class Reader {
 public:
  Program read(const Json& root) {
    const Json& blocks = pir::member(pir::first(pir::member(root, "program"), "regions"), "blocks");
    if (!blocks.is_array() || blocks.size() != 1) {
      fail(ErrorKind::BadModel, "the outermost region of the program does not have one block");
    }
    read_block(blocks[0], -1, 0);
    return std::move(program_);
  }
  PirNames take_names() { return std::move(values_); }

 private:
  using Names = std::vector<std::string>;

  std::size_t read_block(const Json& json, int parent, int depth) {
    if (depth > kMaxDepth) fail(ErrorKind::BadModel, "blocks are nested more than {}", kMaxDepth);
    const std::size_t at = program_.blocks.size();
    program_.blocks.emplace_back();
    program_.blocks[at].index = static_cast<int>(at);
    program_.blocks[at].parent = parent;
    const Json& ops = pir::member(json, "ops");
    if (!ops.is_array()) fail(ErrorKind::BadModel, "a block has no list of operators");
    if (depth == 0) name_fetched(ops);
    for (const Json& argument : pir::items(json, "args")) {
      program_.blocks[at].arguments.push_back(
          define(pir::integer(argument, "#"), argument, at, "arg"));
    }
    int index = 0;
    for (const Json& op : ops) {
      try {
        read_op(op, at, index, depth);
      } catch (Error& error) {
        throw error.in(format("operator {} of block {}", index, at));
      }
      ++index;
    }
    return at;
  }

  /// A value that leaves the program has the name it leaves by.
  void name_fetched(const Json& ops) {
    for (const Json& op : ops) {
      if (pir::text(op, "#") != "1.fetch") continue;
      const Json& inputs = pir::items(op, "I");
      const auto attrs = pir::attributes(op);
      const auto name = std::ranges::find(attrs, "name", &Attr::name);
      if (inputs.empty() || name == attrs.end()) continue;
      if (const auto* text = std::get_if<std::string>(&name->data)) {
        fetched_.emplace(pir::integer(inputs[0], "%"), *text);
      }
    }
  }

  /// Names the value of an id and notes its type.
  std::string define(std::int64_t id, const Json& result, std::size_t block, std::string name) {
    const auto fetched = fetched_.find(id);
    if (fetched != fetched_.end()) name = fetched->second;
    const std::string stem = name;
    for (int i = 1; !taken_.insert(name).second; ++i) name = format("{}_{}", stem, i);
    if (id != 0 && !values_.emplace(id, Names{name}).second) {
      fail(ErrorKind::BadModel, "two values have the number {}", id);
    }
    VarItem var = pir::variable(result);
    var.name = name;
    program_.blocks[block].vars.push_back(std::move(var));
    return name;
  }

  Names find(const Json& operand) const {
    const std::int64_t id = pir::integer(operand, "%");
    if (id == 0) return {};
    const auto found = values_.find(id);
    if (found == values_.end()) fail(ErrorKind::BadModel, "nothing before it makes value {}", id);
    return found->second;
  }

  void read_parameter(const Json& json, std::size_t block) {
    const Json& notes = pir::member(json, "A");
    const Json& result = pir::member(json, "O");
    if (!notes.is_array() || notes.size() < 4 || !notes[3].is_string()) {
      fail(ErrorKind::BadModel, "a parameter has no name");
    }
    const auto name = notes[3].get<std::string>();
    const std::int64_t id = pir::integer(result, "%");
    const bool stored = is_stored(json);
    if (taken_.contains(name)) {
      // Layers that share a parameter each declare it.
      const VarItem again = pir::variable(result);
      const auto& vars = program_.blocks[block].vars;
      const auto same = std::ranges::find_if(vars, [&](const VarItem& var) {
        return var.name == name && var.parameter == stored && var.dtype == again.dtype &&
               var.shape == again.shape;
      });
      if (same == vars.end() || !values_.emplace(id, Names{name}).second) {
        fail(ErrorKind::BadModel, "two parameters or inputs are called '{}'", name);
      }
      return;
    }
    define(id, result, block, name);
    program_.blocks[block].vars.back().parameter = stored;
  }

  /// What is not persistable, such as the state of a recurrent layer's dropout, is in no file.
  static bool is_stored(const Json& parameter) {
    const Json& flags = pir::items(parameter, "OA");
    return flags.empty() || flags[0] != 0;
  }

  /// Lists of tensors exist only between operators: they are names here.
  bool read_builtin(const Json& json, std::string_view name) {
    const Json& inputs = pir::items(json, "I");
    const Json& results = pir::items(json, "O");
    if (name == "combine") {
      Names all;
      for (const Json& each : inputs) {
        const Names names = find(each);
        all.insert(all.end(), names.begin(), names.end());
      }
      values_[pir::integer(pir::at(results, 0), "%")] = all;
      return true;
    }
    if (name != "split" && name != "slice") return false;
    const Names all = find(pir::at(inputs, 0));
    std::size_t first = 0;
    if (name == "slice") {
      for (const Attr& attr : pir::attributes(json)) {
        if (const auto* index = std::get_if<std::int64_t>(&attr.data)) {
          first = static_cast<std::size_t>(*index);
        }
      }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (first + i >= all.size()) fail(ErrorKind::BadModel, "it takes more than the list holds");
      values_[pir::integer(results[i], "%")] = {all[first + i]};
    }
    return true;
  }

  void read_op(const Json& json, std::size_t block, int index, int depth) {
    const std::string code = pir::text(json, "#");
    if (code == "p") return read_parameter(json, block);
    const std::size_t dot = code.find('.');
    const std::string dialect = code.substr(0, dot);
    const std::string name = dot == std::string::npos ? "" : code.substr(dot + 1);
    if (dialect == "0" && read_builtin(json, name)) return;
    if (dialect == "2" && name == "yield") {
      for (const Json& each : pir::items(json, "I")) {
        for (const std::string& value : find(each)) program_.blocks[block].results.push_back(value);
      }
      return;
    }
    OpItem op;
    op.index = index;
    op.attrs = pir::attributes(json);
    if (dialect == "1" && (name == "data" || name == "feed")) return read_feed(json, op, block);
    if (name == "fetch" || name == "shadow_output") {
      op.type = "fetch";
      op.inputs.push_back({"X", find(pir::at(pir::items(json, "I"), 0))});
      program_.blocks[block].ops.push_back(std::move(op));
      return;
    }
    read_known(json, std::move(op), dialect, name, block, depth);
  }

  void read_feed(const Json& json, OpItem op, std::size_t block) {
    const auto* name = op.find("name");
    const auto* text = name == nullptr ? nullptr : std::get_if<std::string>(&name->data);
    if (text == nullptr) fail(ErrorKind::BadModel, "an input has no name");
    if (taken_.contains(*text)) {
      fail(ErrorKind::BadModel, "two parameters or inputs are called '{}'", *text);
    }
    const Json& result = pir::at(pir::items(json, "O"), 0);
    const std::string given = *text;
    fetched_.erase(pir::integer(result, "%"));
    op.type = "feed";
    op.outputs.push_back({"Out", {define(pir::integer(result, "%"), result, block, given)}});
    if (op.find("col") == nullptr) op.attrs.push_back({"col", std::int64_t{feeds_}});
    ++feeds_;
    program_.blocks[block].ops.push_back(std::move(op));
  }

  void read_known(const Json& json, OpItem op, const std::string& dialect, std::string name,
                  std::size_t block, int depth) {
    // A trailing "_" is the variant that works in place.
    const OpRow* row = dialect == "1" ? find_pir_row(name) : nullptr;
    if (row == nullptr && dialect == "1" && name.ends_with('_')) {
      row = find_pir_row(std::string_view(name).substr(0, name.size() - 1));
    }
    op.type = row == nullptr ? format("{}.{}", dialect == "1" ? "pd_op" : dialect, name)
                             : std::string(row->name);
    if (row != nullptr) {
      read_operands(json, *row, op);
      read_regions(json, op, block, depth);
    }
    const auto written = row == nullptr ? std::nullopt : written_operand(name);
    if (written) {
      read_written(json, *row, *written, op);
    } else {
      read_results(json, row, op, block);
    }
    program_.blocks[block].ops.push_back(std::move(op));
  }

  void read_operands(const Json& json, const OpRow& row, OpItem& op) const {
    const Names names = names_of(row.inputs);
    const Json& inputs = pir::items(json, "I");
    const bool rest = !names.empty() && names.back() == "...";
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Names values = find(inputs[i]);
      if (values.empty()) continue;
      if (i < names.size() && names[i] != "...") {
        op.inputs.push_back({names[i], std::move(values)});
      } else if (rest) {
        auto& all = op.inputs.back().variables;
        all.insert(all.end(), values.begin(), values.end());
      } else if (!row.inputs.starts_with('/')) {
        fail(ErrorKind::BadModel, "'{}' has {} operands; {} are known", row.name, inputs.size(),
             names.size());
      }
    }
  }

  void read_regions(const Json& json, OpItem& op, std::size_t block, int depth) {
    if (!json.contains("regions")) return;
    int number = 0;
    for (const Json& region : pir::items(json, "regions")) {
      const Json& inner = pir::at(pir::items(region, "blocks"), 0);
      const std::size_t at = read_block(inner, static_cast<int>(block), depth + 1);
      op.attrs.push_back({format("block_{}", number++), BlockIndex{static_cast<std::int64_t>(at)}});
    }
  }

  void read_written(const Json& json, const OpRow& row, std::size_t operand, OpItem& op) {
    Names target = find(pir::at(pir::items(json, "I"), operand));
    const std::int64_t id = pir::integer(pir::at(pir::items(json, "O"), 0), "%");
    if (id != 0 && !values_.emplace(id, target).second) {
      fail(ErrorKind::BadModel, "two values have the number {}", id);
    }
    op.outputs.push_back({names_of(row.outputs).front(), std::move(target)});
  }

  void read_results(const Json& json, const OpRow* row, OpItem& op, std::size_t block) {
    const Names names = row == nullptr ? Names() : names_of(row->outputs);
    const Json& results = pir::items(json, "O");
    const int number = counts_[op.type]++;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::int64_t id = pir::integer(results[i], "%");
      const std::string stem = format("{}_{}.tmp_{}", op.type, number, i);
      Argument made{i < names.size() ? names[i] : format("result_{}", i), {}};
      if (names.size() == 1) made.name = names[0];
      if (const Json* types = pir::list_types(results[i])) {
        for (std::size_t k = 0; k < types->size(); ++k) {
          made.variables.push_back(
              define(0, Json{{"TT", (*types)[k]}}, block, format("{}_{}", stem, k)));
        }
        values_[id] = made.variables;
      } else if (id != 0) {
        made.variables.push_back(define(id, results[i], block, stem));
      }
      if (!op.outputs.empty() && op.outputs.back().name == made.name) {
        auto& all = op.outputs.back().variables;
        all.insert(all.end(), made.variables.begin(), made.variables.end());
      } else {
        op.outputs.push_back(std::move(made));
      }
    }
  }

  Program program_;
  PirNames values_;
  std::map<std::int64_t, std::string> fetched_;
  std::set<std::string> taken_;
  std::map<std::string, int> counts_;
  int feeds_ = 0;
};

}  // namespace

Program read_pir(std::span<const std::byte> file, PirNames* names) {
  const auto* text = reinterpret_cast<const char*>(file.data());
  const Json root = Json::parse(text, text + file.size(), nullptr, false);
  if (root.is_discarded()) {
    fail(ErrorKind::BadModel, "the file is cut off or damaged: it is no JSON");
  }
  const Json& base = pir::member(root, "base_code");
  const std::int64_t version = pir::integer(base, "version");
  if (version > kNewestVersion) {
    fail(ErrorKind::Unsupported,
         "its PIR has version {}, and {} is the newest known; export it with an older Paddle",
         version, kNewestVersion);
  }
  Reader reader;
  Program program = reader.read(root);
  if (names != nullptr) *names = reader.take_names();
  program.version = format("PIR {}", version);
  return program;
}

bool is_pir(std::span<const std::byte> file) noexcept {
  constexpr std::size_t kHead = 4096;
  const std::string_view head(reinterpret_cast<const char*>(file.data()),
                              std::min(file.size(), kHead));
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' &&
         head.find("\"base_code\"") != std::string_view::npos;
}

}  // namespace quench::paddle
