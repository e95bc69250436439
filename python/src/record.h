// SPDX-License-Identifier: Apache-2.0
// Structs of results as Python objects that can be read, printed and turned into dicts.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace quench::python {

namespace py = pybind11;

/// What a type is called in a stub.
template <typename T>
struct TypeName {
  static std::string get() {
    if constexpr (std::is_same_v<T, bool>) {
      return "bool";
    } else if constexpr (std::is_integral_v<T>) {
      return "int";
    } else if constexpr (std::is_floating_point_v<T>) {
      return "float";
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      return "str";
    } else {
      return py::str(py::type::of<T>().attr("__name__"));
    }
  }
};
template <typename T>
struct TypeName<std::vector<T>> {
  static std::string get() { return "list[" + TypeName<T>::get() + "]"; }
};
template <typename K, typename V>
struct TypeName<std::map<K, V>> {
  static std::string get() {
    return "dict[" + TypeName<K>::get() + ", " + TypeName<V>::get() + "]";
  }
};
template <typename T>
struct TypeName<std::optional<T>> {
  static std::string get() { return TypeName<T>::get() + " | None"; }
};

/// The names of a record's fields, as repr() and to_dict() show them.
inline constexpr const char* kFields = "__annotations__";

py::str record_repr(const py::object& record);
py::dict record_dict(const py::object& record);

/// A class whose fields are members of a struct.
template <typename T, typename... Extra>
class Record {
 public:
  Record(py::module_& module, const char* name, const char* doc) : class_(module, name, doc) {
    class_.attr(kFields) = py::dict();
    class_.def("__repr__", &record_repr);
    class_.def("to_dict", &record_dict, "The fields as a dict, and those within likewise");
  }
  template <typename Member>
  Record& field(const char* name, Member T::*member) {
    class_.def_readonly(name, member);
    class_.attr(kFields)[name] = TypeName<Member>::get();
    return *this;
  }
  /// A field that is worked out.
  template <typename Get>
  Record& computed(const char* name, const char* type, const Get& get) {
    class_.def_property_readonly(name, get);
    class_.attr(kFields)[name] = type;
    return *this;
  }
  py::class_<T, Extra...>& type() { return class_; }

 private:
  py::class_<T, Extra...> class_;
};

}  // namespace quench::python
