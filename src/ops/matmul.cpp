// SPDX-License-Identifier: Apache-2.0
// Matrix products and Einsum.
#include <algorithm>
#include <map>

#include "ops/context.h"

namespace quench::ops {
namespace {

void expect_inner(const Dim& a, const Dim& b, const Dims& left, const Dims& right) {
  if (unify(a, b)) return;
  fail(ErrorKind::BadModel, "{} and {} cannot be multiplied: the inner dimensions are {} and {}",
       shape_text(left), shape_text(right), a.value, b.value);
}

/// The shape of inputs `a` x `b` as NumPy's matmul has it.
std::optional<Dims> matmul_shape(const InferContext& context, std::size_t a, std::size_t b) {
  const Dims* left = context.shape(a);
  const Dims* right = context.shape(b);
  if (left == nullptr || right == nullptr) return std::nullopt;
  if (left->empty() || right->empty()) {
    fail(ErrorKind::BadModel, "a scalar cannot be multiplied as a matrix");
  }
  const bool row = left->size() == 1;
  const bool column = right->size() == 1;
  expect_inner(left->back(), column ? right->front() : (*right)[right->size() - 2], *left, *right);
  const auto batch = [](const Dims& dims) {
    return Dims(dims.begin(),
                dims.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, dims.size())));
  };
  Dims result = broadcast(batch(*left), batch(*right));
  if (!row) result.push_back((*left)[left->size() - 2]);
  if (!column) result.push_back(right->back());
  return result;
}

std::optional<Dims> gemm_shape(const InferContext& context, std::size_t a, std::size_t b) {
  expect_rank(context, a, 2);
  expect_rank(context, b, 2);
  const Dims* left = context.shape(a);
  const Dims* right = context.shape(b);
  const bool trans_a = context.node().get_int("transA", 0) != 0;
  const bool trans_b = context.node().get_int("transB", 0) != 0;
  if (left != nullptr && right != nullptr) {
    expect_inner((*left)[trans_a ? 0 : 1], (*right)[trans_b ? 1 : 0], *left, *right);
  }
  return Dims{left == nullptr ? Dim{} : (*left)[trans_a ? 1 : 0],
              right == nullptr ? Dim{} : (*right)[trans_b ? 0 : 1]};
}

/// The letters of one term of an Einsum equation, with '.' for an ellipsis.
std::string clean_term(std::string_view term) {
  std::string result;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term.substr(i, 3) == "...") {
      result += '.';
      i += 2;
    } else {
      result += term[i];
    }
  }
  return result;
}

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

/// Without "->" the result has the letters that stand once, in alphabetical order.
std::string implicit_result(const std::vector<std::string>& terms) {
  std::map<char, int> count;
  for (const std::string& term : terms) {
    for (const char letter : term) ++count[letter];
  }
  std::string result = count.contains('.') ? "." : "";
  for (const auto& [letter, times] : count) {
    if (letter != '.' && times == 1) result += letter;
  }
  return result;
}

Equation parse_equation(std::string_view text) {
  Equation equation;
  const std::size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    const std::size_t comma = left.find(',');
    equation.terms.push_back(clean_term(left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  equation.result = arrow == std::string_view::npos ? implicit_result(equation.terms)
                                                    : clean_term(text.substr(arrow + 2));
  return equation;
}

/// Notes the dimension of each letter of a term; the ellipsis broadcasts.
void bind_term(const std::string& term, const Dims& dims, std::map<char, Dim>& letters,
               Dims& ellipsis) {
  const auto named = static_cast<std::size_t>(
      std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; }));
  const std::size_t dots = term.size() - named;  // each stands for one ellipsis
  if (dots > 1 || named > dims.size() || (dots == 0 && named != dims.size())) {
    fail(ErrorKind::BadModel, "term '{}' of the equation does not fit an input of shape {}", term,
         shape_text(dims));
  }
  std::size_t at = 0;
  for (const char letter : term) {
    if (letter == '.') {
      const auto from = dims.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t width = dims.size() - named;
      ellipsis = broadcast(ellipsis, Dims(from, from + static_cast<std::ptrdiff_t>(width)));
      at += width;
      continue;
    }
    Dim& known = letters[letter];
    if (known.value == 1 || (!known.known() && known.symbol.empty())) known = dims[at];
    ++at;
  }
}

}  // namespace

void infer_matmul(InferContext& context) {
  expect_same_dtype(context, 0, 1);
  context.set(0, context.dtype(0), matmul_shape(context, 0, 1));
}

void infer_matmul_integer(InferContext& context) {
  context.set(0, DType::Int32, matmul_shape(context, 0, 1));
}

void infer_qlinear_matmul(InferContext& context) {
  context.set(0, context.dtype(7), matmul_shape(context, 0, 3));
}

/// com.microsoft MatMulIntegerToFloat and DynamicQuantizeMatMul: float whatever goes in.
void infer_matmul_to_float(InferContext& context) {
  context.set(0, DType::Float32, matmul_shape(context, 0, 1));
}

void infer_gemm(InferContext& context) {
  expect_same_dtype(context, 0, 1);
  context.set(0, context.dtype(0), gemm_shape(context, 0, 1));
}

/// com.microsoft QGemm: without an output scale the result is float.
void infer_qgemm(InferContext& context) {
  const DType dtype = context.has_input(7) ? context.dtype(8) : DType::Float32;
  context.set(0, dtype, gemm_shape(context, 0, 3));
}

void infer_einsum(InferContext& context) {
  const Equation equation = parse_equation(context.node().get_string("equation", ""));
  if (equation.terms.size() != context.num_inputs()) {
    fail(ErrorKind::BadModel, "the equation has {} terms for {} inputs", equation.terms.size(),
         context.num_inputs());
  }
  context.set(0, context.dtype(0), std::nullopt);
  std::map<char, Dim> letters;
  Dims ellipsis;
  for (std::size_t i = 0; i < equation.terms.size(); ++i) {
    const Dims* dims = context.shape(i);
    if (dims == nullptr) return;
    bind_term(equation.terms[i], *dims, letters, ellipsis);
  }
  Dims result;
  for (const char letter : equation.result) {
    if (letter == '.') {
      result.insert(result.end(), ellipsis.begin(), ellipsis.end());
    } else {
      result.push_back(letters[letter]);
    }
  }
  context.set(0, context.dtype(0), std::move(result));
}

void infer_det(InferContext& context) {
  expect_min_rank(context, 0, 2);
  const Dims* dims = context.shape(0);
  context.set(0, context.dtype(0),
              dims == nullptr ? std::nullopt : std::optional(Dims(dims->begin(), dims->end() - 2)));
}

}  // namespace quench::ops
