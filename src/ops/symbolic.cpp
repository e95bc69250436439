// SPDX-License-Identifier: Apache-2.0
// Arithmetic on symbols, kept in the form factor*atom+offset so that equal sizes read equal.
#include "ops/symbolic.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"

namespace quench::ops {
namespace {

// Longer expressions help nobody, and without a limit repeated squaring would fill the memory.
constexpr std::size_t kMaxSymbol = 96;
constexpr std::size_t kMaxDigits = 12;

struct Linear {
  std::int64_t factor = 1;
  std::string atom;
  std::int64_t offset = 0;
};

bool all_digits(std::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t parse_number(std::string_view digits) {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

/// The last + or - outside parentheses, or npos.
std::size_t last_sign(std::string_view text) {
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(') --depth;
    if (depth == 0 && i > 0 && (text[i] == '+' || text[i] == '-')) return i;
  }
  return std::string_view::npos;
}

Linear parse(std::string_view symbol) {
  Linear result;
  if (const std::size_t sign = last_sign(symbol);
      sign != std::string_view::npos && all_digits(symbol.substr(sign + 1))) {
    result.offset = parse_number(symbol.substr(sign + 1)) * (symbol[sign] == '-' ? -1 : 1);
    symbol = symbol.substr(0, sign);
  }
  const std::size_t star = symbol.find('*');
  if (star != std::string_view::npos && star + 1 < symbol.size() &&
      all_digits(symbol.substr(0, star)) && last_sign(symbol) == std::string_view::npos) {
    result.factor = parse_number(symbol.substr(0, star));
    symbol = symbol.substr(star + 1);
  }
  result.atom = std::string(symbol);
  return result;
}

std::string wrapped(const std::string& atom) {
  return last_sign(atom) == std::string::npos ? atom : "(" + atom + ")";
}

SymInt to_symbol(std::string text) {
  SymInt result;
  if (text.size() <= kMaxSymbol) result.symbol = std::move(text);
  return result;
}

SymInt to_int(const Linear& linear) {
  if (linear.factor == 0) return linear.offset;
  if (linear.factor < 0) return {};
  std::string text =
      linear.factor == 1 ? linear.atom : format("{}*{}", linear.factor, wrapped(linear.atom));
  if (linear.offset != 0) text += format("{:+}", linear.offset);
  return to_symbol(std::move(text));
}

std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
}

std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t value = 0;
  return __builtin_mul_overflow(a, b, &value) ? std::nullopt : std::optional(value);
}

SymInt from_optional(std::optional<std::int64_t> number) {
  return number ? SymInt(*number) : SymInt();
}

SymInt shifted(const SymInt& a, std::int64_t by) {
  if (!a.known()) return {};
  if (a.number) return from_optional(checked_add(*a.number, by));
  Linear linear = parse(a.symbol);
  const auto offset = checked_add(linear.offset, by);
  if (!offset) return {};
  linear.offset = *offset;
  return to_int(linear);
}

SymInt scaled(const SymInt& a, std::int64_t by) {
  if (a.number) return from_optional(checked_mul(*a.number, by));
  Linear linear = parse(a.symbol);
  const auto factor = checked_mul(linear.factor, by);
  const auto offset = checked_mul(linear.offset, by);
  if (!factor || !offset) return {};
  return to_int({*factor, std::move(linear.atom), *offset});
}

std::int64_t floor_of(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// Numbers and symbols whose product is a count of elements.
struct Factors {
  std::optional<std::int64_t> number = 1;
  std::vector<std::string> symbols;
  bool unknown = false;

  explicit Factors(std::span<const Dim> dims) {
    for (const Dim& dim : dims) {
      if (dim.known()) {
        if (number) number = checked_mul(*number, dim.value);
      } else if (!dim.symbol.empty()) {
        symbols.push_back(dim.symbol);
      } else {
        unknown = true;
      }
    }
  }
};

SymInt as_symbol(const std::string& text) {
  SymInt result;
  result.symbol = text;
  return result;
}

}  // namespace

SymInt::SymInt(const Dim& dim) : symbol(dim.symbol) {
  if (!dim.known()) return;
  number = dim.value;
  symbol.clear();
}

Dim SymInt::dim() const {
  if (number) return Dim{std::max<std::int64_t>(*number, -1), {}};
  return Dim{-1, symbol};
}

SymInt operator+(const SymInt& a, const SymInt& b) {
  if (!a.known() || !b.known()) return {};
  if (b.number) return shifted(a, *b.number);
  if (a.number) return shifted(b, *a.number);
  Linear x = parse(a.symbol);
  const Linear y = parse(b.symbol);
  const auto offset = checked_add(x.offset, y.offset);
  if (!offset) return {};
  if (x.atom == y.atom) {
    const auto factor = checked_add(x.factor, y.factor);
    return factor ? to_int({*factor, std::move(x.atom), *offset}) : SymInt();
  }
  x.offset = 0;
  const SymInt left = to_int(x);
  const SymInt right = to_int({y.factor, y.atom, 0});
  if (left.symbol.empty() || right.symbol.empty()) return {};
  const auto& [first, second] = std::minmax(left.symbol, right.symbol);
  return to_int({1, first + "+" + second, *offset});
}

SymInt operator-(const SymInt& a, const SymInt& b) {
  if (!a.known() || !b.known()) return {};
  if (b.number) {
    const auto negative = checked_mul(*b.number, -1);
    return negative ? shifted(a, *negative) : SymInt();
  }
  if (a.number) return {};
  Linear x = parse(a.symbol);
  const Linear y = parse(b.symbol);
  const auto offset = checked_add(x.offset, -y.offset);
  if (x.atom != y.atom || !offset) return {};
  return to_int({x.factor - y.factor, std::move(x.atom), *offset});
}

SymInt operator*(const SymInt& a, const SymInt& b) {
  if (a.is(0) || b.is(0)) return 0;
  if (!a.known() || !b.known()) return {};
  if (b.number) return scaled(a, *b.number);
  if (a.number) return scaled(b, *a.number);
  Linear x = parse(a.symbol);
  Linear y = parse(b.symbol);
  const auto factor = checked_mul(x.factor, y.factor);
  if (!factor) return {};
  if (x.offset != 0 || y.offset != 0) {
    return to_symbol(wrapped(a.symbol) + "*" + wrapped(b.symbol));
  }
  x.atom = wrapped(x.atom);
  y.atom = wrapped(y.atom);
  const auto& [first, second] = std::minmax(x.atom, y.atom);
  return to_int({*factor, first + "*" + second, 0});
}

SymInt floor_div(const SymInt& a, std::int64_t divisor) {
  if (divisor <= 0 || !a.known()) return {};
  if (a.number) return floor_of(*a.number, divisor);
  if (divisor == 1) return a;
  Linear linear = parse(a.symbol);
  if (linear.factor % divisor == 0) {
    linear.factor /= divisor;
    linear.offset = floor_of(linear.offset, divisor);
    return to_int(linear);
  }
  // Whole multiples leave the brackets: a stride-2 window of 2 then reads floor(H/2).
  const std::int64_t whole = floor_of(linear.offset, divisor);
  linear.offset -= whole * divisor;
  const SymInt rest = to_int(linear);
  if (rest.symbol.empty()) return {};
  return shifted(to_symbol(format("floor({}/{})", wrapped(rest.symbol), divisor)), whole);
}

SymInt ceil_div(const SymInt& a, std::int64_t divisor) {
  if (divisor <= 0) return {};
  return floor_div(a + SymInt(divisor - 1), divisor);
}

SymInts to_ints(std::span<const Dim> dims) {
  SymInts result;
  result.reserve(dims.size());
  for (const Dim& dim : dims) result.emplace_back(dim);
  return result;
}

Dims to_dims(const SymInts& ints) {
  Dims result;
  result.reserve(ints.size());
  for (const SymInt& value : ints) result.push_back(value.dim());
  return result;
}

Dims to_dims(std::span<const std::int64_t> numbers) {
  Dims result;
  result.reserve(numbers.size());
  for (const std::int64_t number : numbers) result.push_back(SymInt(number).dim());
  return result;
}

SymInt product(std::span<const Dim> dims) { return quotient(dims, {}); }

SymInt quotient(std::span<const Dim> total, std::span<const Dim> part) {
  Factors above(total);
  Factors below(part);
  if (above.unknown || below.unknown || !above.number || !below.number) return {};
  for (const std::string& symbol : below.symbols) {
    const auto match = std::find(above.symbols.begin(), above.symbols.end(), symbol);
    if (match == above.symbols.end()) return {};
    above.symbols.erase(match);
  }
  SymInt result = *above.number;
  for (const std::string& symbol : above.symbols) result = result * as_symbol(symbol);
  return *below.number == 1 ? result : floor_div(result, *below.number);
}

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const std::size_t lead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Dim& dim = result[lead + i];
    const Dim& other = shorter[i];
    if (other.value == 1 || dim == other) continue;
    if (dim.known() && dim.value != 1 && other.known()) {
      fail(ErrorKind::BadModel, "shapes {} and {} do not broadcast together",
           to_string(ValueType::tensor(DType::Undefined, a)),
           to_string(ValueType::tensor(DType::Undefined, b)));
    }
    if (dim.value == 1 || other.known()) {
      dim = other;
    } else if (!dim.known()) {
      dim = Dim{};
    }
  }
  return result;
}

std::optional<Dim> unify(const Dim& a, const Dim& b) {
  if (a.known() && b.known() && a.value != b.value) return std::nullopt;
  if (a.known()) return a;
  if (b.known()) return b;
  return a.symbol.empty() ? b : a;
}

Dim either(const Dim& a, const Dim& b) { return a == b ? a : Dim{}; }

}  // namespace quench::ops
