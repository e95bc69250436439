// SPDX-License-Identifier: Apache-2.0
// Writes a tensor as it was read: raw, typed, or in the data file; its bytes are not copied.
#include "base/format.h"
#include "formats/onnx/onnx.pb.h"
#include "formats/onnx/tensors.h"
#include "formats/onnx/wire.h"

namespace quench::onnx {
namespace {

/// Smaller tensors stay inside: readers need shapes and axes while they build the graph.
constexpr std::size_t kMinOutside = 1024;
constexpr std::uint64_t kDataAlignment = 64;

void add_entry(TensorProto& proto, const char* key, std::string value) {
  StringStringEntryProto& entry = *proto.add_external_data();
  entry.set_key(key);
  entry.set_value(std::move(value));
}

}  // namespace

Store Store::of_parts() {
  Store store(SaveOptions::Data::Inside, {});
  store.as_parts_ = true;
  return store;
}

bool Store::goes_outside(const Tensor& tensor, ConstantForm form) const {
  if (tensor.dtype() == DType::String || tensor.num_bytes() == 0) return false;
  if (data_ == SaveOptions::Data::External) return tensor.num_bytes() >= kMinOutside;
  return data_ == SaveOptions::Data::AsRead && form == ConstantForm::External;
}

void Store::write(const Tensor& tensor, ConstantForm form, TensorProto& proto) {
  proto.set_data_type(static_cast<std::int32_t>(tensor.dtype()));
  for (const std::int64_t dim : tensor.shape()) proto.add_dims(dim);
  if (as_parts_ && tensor.dtype() != DType::String) return write_part(tensor, form, proto);
  if (goes_outside(tensor, form)) return write_outside(tensor, proto);
  switch (tensor.dtype()) {
    case DType::String:
      for (const std::string& text : tensor.strings()) proto.add_string_data(text);
      return;
    case DType::Float32:
    case DType::Complex64:
      return write_inside(tensor, form == ConstantForm::Typed ? kFloatData : kRawData, proto);
    case DType::Float64:
    case DType::Complex128:
      return write_inside(tensor, form == ConstantForm::Typed ? kDoubleData : kRawData, proto);
    default:
      break;
  }
  if (form == ConstantForm::Typed) return to_typed(tensor, proto);
  write_inside(tensor, kRawData, proto);
}

void Store::write_inside(const Tensor& tensor, std::uint32_t field, TensorProto& proto) {
  if (tensor.num_bytes() == 0 && field != kRawData) return;
  Payload& place = *proto.mutable_quench_payload();
  place.set_field(field);
  place.set_position(payloads_.size());
  payloads_.push_back(tensor.bytes());
}

void Store::write_part(const Tensor& tensor, ConstantForm form, TensorProto& proto) {
  // A part is inside its file, wherever it came from; only typed fields are worth remembering.
  if (form == ConstantForm::Typed) proto.set_quench_form(static_cast<std::int32_t>(form));
  Payload& place = *proto.mutable_quench_payload();
  place.set_field(kRawData);
  place.set_position(parts_.size());
  place.set_size(tensor.num_bytes());
  parts_.push_back(tensor);
}

void Store::write_outside(const Tensor& tensor, TensorProto& proto) {
  const auto [known, is_new] = placed_.try_emplace({tensor.identity(), tensor.num_bytes()}, 0);
  if (is_new) {
    known->second = (end_ + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
    end_ = known->second + tensor.num_bytes();
    blocks_.push_back({known->second, tensor});
  }
  proto.set_data_location(1);
  add_entry(proto, "location", location_);
  add_entry(proto, "offset", std::to_string(known->second));
  add_entry(proto, "length", std::to_string(tensor.num_bytes()));
}

}  // namespace quench::onnx
