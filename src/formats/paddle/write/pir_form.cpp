// SPDX-License-Identifier: Apache-2.0
// How PIR has an operator of programs: the table, and what the rows of operators say.
#include "formats/paddle/write/pir_form.h"

#include <algorithm>
#include <map>

namespace quench::paddle::write {
namespace {

PirItem item_of(std::string_view token, std::size_t mark) {
  const std::size_t equals = token.find('=', mark);
  PirItem item{
      .name = token.substr(0, mark),
      .kind = token.substr(mark + 1, equals == std::string_view::npos ? equals : equals - mark - 1),
      .operand = token[mark] == '@'};
  if (equals != std::string_view::npos) item.otherwise = token.substr(equals + 1);
  return item;
}

PirForm form_of(std::string_view op_type, std::string_view text) {
  PirForm form{.row = find_row(op_type)};
  form.name = form.row->pir.empty() ? form.row->name : parts_of(form.row->pir, ' ').front();
  for (const std::string_view token : parts_of(text, ' ')) {
    if (token[0] == '=') {
      form.name = token.substr(1);
    } else if (token[0] == '>') {
      form.outputs = parts_of(token.substr(1), ',');
    } else if (token[0] == '*') {
      form.lists.insert(token.substr(1));
    } else {
      form.items.push_back(item_of(token, token.find_first_of(":@")));
    }
  }
  if (form.outputs.empty()) form.outputs = {parts_of(form.row->outputs, ' ').front()};
  return form;
}

/// Those that the table lists, and those that have nothing to list.
std::map<std::string_view, PirForm> all_forms() {
  std::map<std::string_view, PirForm> forms;
#define QUENCH_PIR(op, text) forms.emplace(#op, form_of(#op, text));
#include "formats/paddle/write/pir_forms.inc"
#undef QUENCH_PIR
  for (const OpRow* row : all_rows()) {
    // Alignment along an axis is done before.
    const bool plain = row->attributes.empty() || row->attributes == "axis=-1";
    if (plain && row->pir != "-" && !row->outputs.empty()) {
      forms.emplace(row->name, form_of(row->name, ""));
    }
  }
  return forms;
}

}  // namespace

const PirItem* PirForm::find(std::string_view item) const {
  const auto found = std::ranges::find(items, item, &PirItem::name);
  return found == items.end() ? nullptr : &*found;
}

const PirForm* find_pir_form(std::string_view op_type) {
  static const std::map<std::string_view, PirForm> forms = all_forms();
  const auto found = forms.find(op_type);
  return found == forms.end() ? nullptr : &found->second;
}

}  // namespace quench::paddle::write
