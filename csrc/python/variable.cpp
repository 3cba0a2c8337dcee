#include "python/variable.h"

#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "autograd/backward.h"
#include "python/cuda_array.h"
#include "python/graph.h"
#include "python/interpreter.h"
#include "tensor/views.h"

namespace renga::python {
namespace {

// The numpy.ndarray, or the array of a CUDA device, over a variable's array.
class PythonHostView final : public HostView {
 public:
  explicit PythonHostView(py::object array) : array(std::move(array)) {}
  ~PythonHostView() override { release(array.release().ptr()); }

  // An ndarray that owns its memory has two references, this one and that of the storage that
  // borrows the memory. One over memory of the core has this reference, and references the storage.
  // An array of a CUDA device may share its memory without either.
  bool is_uniquely_referenced(const Storage& memory) const override {
    if (!memory.device().is_host()) return false;
    const bool owns = (py::detail::array_proxy(array.ptr())->flags &
                       py::detail::npy_api::NPY_ARRAY_OWNDATA_) != 0;
    if (owns) return array.ref_count() == 2 && memory.use_count() == 1;
    return array.ref_count() == 1 && memory.use_count() == 2;
  }

  py::object array;
};

PyTypeObject* variable_type = nullptr;  // set once, when the class is made

using PyVariable = py::class_<VariableBody, Ref<VariableBody>>;

Array array_from(py::handle data, const char* what) {
  if (data.is_none()) return Array();
  if (!is_array(data)) {
    throw py::type_error(std::string(what) + ": expected a numpy.ndarray, got " +
                         py::str(py::type::of(data)).cast<std::string>());
  }
  return from_python(data);
}

void keep_view(VariableBody& body, py::handle data) {
  body.host_view = std::make_unique<PythonHostView>(py::reinterpret_borrow<py::object>(data));
}

void set_python_array(VariableBody& body, py::handle data, const char* what) {
  const Array x = array_from(data, what);
  body.set_array(x);
  // A converted array is replaced: Python sees the array that the core computes with.
  if (x.defined() && (!is_ndarray(data) ||
                      x.data() == static_cast<void*>(py::detail::array_proxy(data.ptr())->data))) {
    keep_view(body, data);
  }
}

// Does what set_python_array() does; an ndarray of objects, or of another dtype that the core has
// not, is kept for Python alone.
void set_any_array(VariableBody& body, py::handle data, const char* what) {
  if (!is_ndarray(data) || has_known_dtype(data)) return set_python_array(body, data, what);
  body.set_array(Array());
  keep_view(body, data);
}

// The ndarray of a variable that is kept for Python alone, else a null handle.
py::handle kept_array(const VariableBody& body) {
  if (body.metadata().defined() || !body.host_view) return {};
  return static_cast<PythonHostView&>(*body.host_view).array;
}

// A property of the core's array, or that of an array that is kept for Python alone. Result is its
// Python type.
template <class Result, class Get>
void bind_metadata(PyVariable& c, const char* name, const Get& get) {
  c.def_property_readonly(name, [name, get](const VariableBody& v) -> Result {
    if (const py::handle kept = kept_array(v)) return py::object(kept.attr(name));
    return py::object(py::cast(get(known_metadata(v))));
  });
}

void check_grad(const VariableBody& body, const Variable& grad) {
  const Array& own = body.metadata();
  if (!grad.defined() || !own.defined()) return;
  // Dtypes are compared as Python sees them: bfloat16 is float32.
  if (dtype_to_python(grad.dtype()).ptr() != dtype_to_python(own.dtype()).ptr()) {
    throw py::type_error("grad: expected dtype " + std::string(name_of(own.dtype())) + ", got " +
                         std::string(name_of(grad.dtype())));
  }
  require<std::invalid_argument>(grad.shape() == own.shape(), "grad: expected shape ", own.shape(),
                                 ", got ", grad.shape());
}

void set_grad(VariableBody& body, py::handle grad) {
  if (grad.is_none()) {
    body.set_grad(Variable());
    return;
  }
  const Variable g(Array{}, true);
  set_python_array(*g.body(), grad, "grad");
  check_grad(body, g);
  body.set_grad(g);
}

Ref<VariableBody> make_variable(py::handle data, const py::object& name, py::handle grad,
                                bool requires_grad) {
  const Variable x(Array(), requires_grad);
  set_any_array(*x.body(), data, "Variable");
  if (!name.is_none()) x.node()->name = name.cast<std::string>();
  set_grad(*x.body(), grad);
  return x.body();
}

void add_grad(VariableBody& body, const VariableBody& other) {
  if (!other.grad.defined()) return;
  check_grad(body, other.grad);
  body.note_added_grad();
  const SettingScope off(&Settings::backprop, false);
  // A copy where it is the first, so that two variables never share one gradient.
  const Array& grad = other.grad.array();
  const Array& own = body.metadata();
  const bool is_here = !own.defined() || own.device() == grad.device();
  const Variable mine(is_here ? copy_of(grad) : to_device(grad, own.device()));
  body.grad = add_gradients(body.grad, mine);
}

// Removes the creators of the variable and of all variables before it, without recursion.
void unchain_backward(const VariableBody& body) {
  std::vector<Ref<Node>> open;
  if (body.node()->creator) open.push_back(body.node()->creator);
  while (!open.empty()) {
    const Ref<Node> node = open.back();
    open.pop_back();
    for (const auto& x : node->inputs) {
      if (x->creator) open.push_back(x->creator);
    }
    node->unchain();
  }
}

void backward_from(VariableBody& body, bool retain_grad, bool enable_double_backprop,
                   std::optional<double> loss_scale) {
  known_metadata(body);
  const Variable self{Ref<VariableBody>(&body)};
  warn_without_gradient(self, 1);
  backward({&self, 1}, {retain_grad, enable_double_backprop, loss_scale}, pass_context());
}

// A function of Python's own kind, which is called in a fraction of the time of pybind11's.
PyObject* get_array(PyObject*, PyObject* variable) noexcept {
  try {
    VariableBody* const body = variable_body(variable);
    if (body == nullptr) throw py::type_error("array: expected a Variable");
    return python_array(*body).release().ptr();
  } catch (...) {
    py::detail::try_translate_exceptions();
    return nullptr;
  }
}

PyMethodDef array_getter{"array", &get_array, METH_O, nullptr};

void bind_data(PyVariable& c) {
  const auto get = py::reinterpret_steal<py::object>(PyCFunction_New(&array_getter, nullptr));
  const py::cpp_function set(
      [](VariableBody& v, py::handle data) { set_any_array(v, data, "array"); });
  const char* text = "The array, sharing its memory; None while it is not initialized.";
  const py::handle property(reinterpret_cast<PyObject*>(&PyProperty_Type));
  c.attr("array") = property(get, set, py::none(), text);
  c.attr("data") = c.attr("array");
  c.attr("raw_array") = property(get, py::none(), py::none(), text);
  bind_metadata<py::typing::Tuple<py::int_, py::ellipsis>>(
      c, "shape", [](const Array& x) { return x.shape(); });
  bind_metadata<py::int_>(c, "ndim", [](const Array& x) { return x.ndim(); });
  bind_metadata<py::int_>(c, "size", [](const Array& x) { return x.size(); });
  bind_metadata<py::dtype>(c, "dtype", [](const Array& x) { return x.dtype(); });
  c.def_property_readonly(
      "is_initialized",
      [](const VariableBody& v) { return v.metadata().defined() || v.host_view != nullptr; },
      "Whether there is an array.");
  c.def_property_readonly(
      "owns_array",
      [](const VariableBody& v) { return v.metadata().defined() && v.is_exclusive(); },
      "Whether this is the only reference to the array and its memory, so that it may be moved.");
  c.def_property_readonly(
      "device_name",
      [](const VariableBody& v) {
        return to_string(v.metadata().defined() ? v.metadata().device() : Device{});
      },
      "The core's name of the array's device: 'cpu', 'cuda:0', 'meta:0', and so on.");
  c.def(
      "move_to",
      [](VariableBody& v, const std::string& device) {
        const Device to = device_from_string(device);
        if (v.metadata().defined()) v.set_array(to_device(v.array(), to));
        if (v.grad.defined()) v.grad = Variable(to_device(v.grad.array(), to));
      },
      py::arg("device"), "Moves the array and the gradient to the device with this name.");
  c.def_property_readonly(
      "is_meta",
      [](const VariableBody& v) {
        return v.metadata().defined() && v.metadata().device().is_meta();
      },
      "Whether it has a shape and a dtype, but no elements.");
  c.def("__len__", [](const VariableBody& v) {
    if (const py::handle kept = kept_array(v)) return static_cast<std::int64_t>(py::len(kept));
    const Array& x = known_metadata(v);
    if (x.ndim() == 0) throw py::type_error("len() of unsized object");
    return x.shape(0);
  });
}

void bind_gradient(PyVariable& c) {
  c.def_property("grad", &python_grad, &set_grad, "The gradient's array, or None.");
  c.def_property(
      "grad_var", [](const VariableBody& v) { return v.grad; },
      [](VariableBody& v, py::handle g) {
        const Variable grad = g.is_none() ? Variable() : g.cast<Variable>();
        check_grad(v, grad);
        v.set_grad(grad);
      },
      "The gradient as a Variable, or None.");
  c.def_property_readonly(
      "owns_grad",
      [](const VariableBody& v) {
        if (!v.grad.defined() || v.grad.body()->use_count() > 1) return false;
        const Storage& memory = *v.grad.array().storage();
        return memory.use_count() == 1 && !memory.is_borrowed();
      },
      "Whether this is the only reference to the gradient and its memory.");
  c.def(
      "cleargrad", [](VariableBody& v) { v.set_grad(Variable()); }, "Clears the gradient.");
  c.def(
      "spend_grad", [](VariableBody& v) { v.grad_state = GradState::spent; },
      "Notes that an update has used the gradient and kept no sum to which backward() could add.");
  c.def_property_readonly(
      "grad_is_partial", [](const VariableBody& v) { return v.grad_state == GradState::partial; },
      "Whether the gradient lacks those of before an update, which cleargrad() had not cleared.");
  c.def("addgrad", &add_grad, py::arg("var"), "Adds another variable's gradient to this one's.");
  c.def("backward", &backward_from, py::arg("retain_grad") = false,
        py::arg("enable_double_backprop") = false, py::arg("loss_scale") = py::none(),
        "Runs the backward pass, which adds to the gradients of the leaves. It starts from this "
        "variable's gradient; without one, from 1 if the variable has a single element.");
  c.def_property(
      "loss_scale",
      [](const VariableBody& v) { return v.pass ? v.pass->loss_scale : std::nullopt; },
      [](VariableBody& v, std::optional<double> scale) {
        v.pass = scale ? make_ref<Propagation>(scale) : nullptr;
      },
      "The factor of the loss, and so of the gradient; None if there was none.");
  c.def_property(
      "requires_grad", [](const VariableBody& v) { return v.node()->requires_grad; },
      [](VariableBody& v, bool on) { v.node()->requires_grad = on; });
}

// The dtype of a Variable or an ndarray, null for any other object.
py::object dtype_of(py::handle x) {
  if (const VariableBody* body = variable_body(x)) {
    const Array& own = body->metadata();
    return own.defined() ? py::object(dtype_to_python(own.dtype())) : py::object();
  }
  return is_ndarray(x) ? py::object(py::reinterpret_borrow<py::array>(x).dtype()) : py::object();
}

bool are_floats_of_one_dtype(const py::args& xs) {
  char common = 0;
  for (const py::handle x : xs) {
    const auto dtype = py::reinterpret_steal<py::dtype>(dtype_of(x).release());
    // The character of a dtype does not depend on its byte order.
    if (!dtype || dtype.kind() != 'f' || (common != 0 && dtype.char_() != common)) return false;
    common = dtype.char_();
  }
  return true;
}

// The cyclic garbage collector has to traverse the graph of the core: Python functions in it may
// reference the owner of the variable.
traverseproc traverse_base = nullptr;
inquiry clear_base = nullptr;

// The body, or nullptr before __init__.
VariableBody* body_or_none(PyObject* object) {
  const auto* instance = reinterpret_cast<const py::detail::instance*>(object);
  if (!instance->simple_layout) return nullptr;
  return static_cast<VariableBody*>(instance->simple_value_holder[0]);
}

int traverse(PyObject* self, visitproc visit, void* arg);

// Visits the dictionary and the type of a Variable. Python 3.11 visits the dictionary of an object
// whose class is derived in Python, other versions leave it to the base class: if it were visited
// twice, or never, no cycle through it would be found.
int traverse_object(PyObject* self, visitproc visit, void* arg) {
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
  if (Py_TYPE(self)->tp_traverse != &traverse) {
    Py_VISIT(Py_TYPE(self));
    return 0;
  }
#endif
  return traverse_base(self, visit, arg);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  if (const int stop = traverse_object(self, visit, arg)) return stop;
  const VariableBody* body = body_or_none(self);
  // Another owner keeps the body alive.
  if (body == nullptr || body->use_count() > 1) return 0;
  return traverse_graph(body->node(), visit, arg);
}

int clear(PyObject* self) {
  clear_base(self);
  if (VariableBody* body = body_or_none(self)) {
    const Variable leaf(Array(), body->node()->requires_grad);
    body->set_node(leaf.node());
  }
  return 0;
}

void set_up_type(PyHeapTypeObject* type) {
  set_operators(type);
  set_subscript(type);
  traverse_base = std::exchange(type->ht_type.tp_traverse, &traverse);
  clear_base = std::exchange(type->ht_type.tp_clear, &clear);
}

void bind_history(PyVariable& c) {
  c.def_property_readonly("node", [](const VariableBody& v) { return v.node(); });
  c.def_property(
      "creator_node", [](const VariableBody& v) { return python_node(v.node()->creator); },
      [](VariableBody& v, py::handle f) { set_creator(*v.node(), f); });
  c.def_property_readonly("rank", [](const VariableBody& v) { return v.node()->rank(); });
  c.def_property(
      "name",
      [](const VariableBody& v) -> py::object {
        if (v.node()->name.empty()) return py::none();
        return py::str(v.node()->name);
      },
      [](VariableBody& v, const std::optional<std::string>& name) {
        v.node()->name = name.value_or("");
      });
  c.def_property(
      "stage", [](const VariableBody& v) { return v.node()->stage; },
      [](VariableBody& v, int stage) { v.node()->stage = stage; },
      "The stage of a pipeline that computes it, -1 where every process does.");
  c.def(
      "unchain", [](VariableBody& v) { v.node()->unchain(); }, "Removes the creator.");
  c.def("unchain_backward", &unchain_backward, "Removes the whole graph before this variable.");
  c.def("retain_data", [](VariableBody& v) {
    known_metadata(v);
    v.node()->retained = std::make_unique<Array>(v.array());
  });
}

}  // namespace

void refuse_dtype(py::handle ndarray) {
  fail("expected an array of numbers, got dtype ",
       py::str(ndarray.attr("dtype")).cast<std::string>());
}

const Array& known_metadata(const VariableBody& body) {
  if (const py::handle kept = kept_array(body)) refuse_dtype(kept);
  require<std::runtime_error>(body.metadata().defined(),
                              "Variable: expected an initialized array, but it has none yet");
  return body.metadata();
}

py::object python_array(VariableBody& body) {
  if (const py::handle kept = kept_array(body)) return py::reinterpret_borrow<py::object>(kept);
  if (!body.metadata().defined()) return py::none();
  const Array& x = body.writable_array();
  const bool is_new = !body.host_view;
  if (is_new) body.host_view = std::make_unique<PythonHostView>(to_python(x));
  const py::object& view = static_cast<PythonHostView&>(*body.host_view).array;
  if (!is_new && device_arrays != nullptr && device_arrays->is(view)) device_arrays->follow(view);
  return view;
}

py::object python_grad(VariableBody& body) {
  if (!body.grad.defined()) return py::none();
  VariableBody& grad = *body.grad.body();
  if (grad.metadata().defined() && !has_distinct_elements(grad.array())) {
    grad.set_array(contiguous(grad.array()));
  }
  return python_array(grad);
}

py::object python_variable(const Variable& x) {
  if (!x.defined()) return py::none();
  // VariableBody is final, so the lookup of the most derived type is skipped.
  static const auto* type = py::detail::get_type_info(typeid(VariableBody));
  return py::reinterpret_steal<py::object>(
      py::detail::type_caster_generic::cast(x.body().get(), py::return_value_policy::take_ownership,
                                            {}, type, nullptr, nullptr, &x.body()));
}

void refuse_uninitialized(py::handle type) {
  py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(type.ptr()))->operator_new =
      [](std::size_t) -> void* {
    throw std::runtime_error(
        "expected an object whose __init__ has run, got an uninitialized one (is "
        "super().__init__() missing?)");
  };
}

VariableBody* variable_body(py::handle object) {
  PyTypeObject* type = Py_TYPE(object.ptr());
  if (type != variable_type && !PyType_IsSubtype(type, variable_type)) return nullptr;
  // pybind11's general cast looks the type up in tables: a third of the time of a small operation.
  const auto* instance = reinterpret_cast<const py::detail::instance*>(object.ptr());
  if (instance->simple_layout && instance->simple_value_holder[0] != nullptr) {
    return static_cast<VariableBody*>(instance->simple_value_holder[0]);
  }
  return object.cast<VariableBody*>();
}

void bind_variable(py::module_& m) {
  PyVariable c(m, "Variable", py::dynamic_attr(), py::custom_type_setup(&set_up_type));
  variable_type = reinterpret_cast<PyTypeObject*>(c.ptr());
  c.def(py::init(&make_variable), py::arg("data") = py::none(), py::kw_only(),
        py::arg("name") = py::none(), py::arg("grad") = py::none(),
        py::arg("requires_grad") = true);
  bind_data(c);
  bind_gradient(c);
  bind_history(c);
  m.def("are_floats_of_one_dtype", &are_floats_of_one_dtype,
        "Whether all are Variables or ndarrays of one float dtype, in any byte order.");
  // Makes NumPy's operators defer to a Variable on the right.
  c.attr("__array_ufunc__") = py::none();
  c.attr("__array_priority__") = 200;
}

}  // namespace renga::python

namespace pybind11::detail {

bool type_caster<renga::Variable>::load(handle source, bool) {
  if (renga::VariableBody* body = renga::python::variable_body(source)) {
    renga::python::known_metadata(*body);
    value = renga::Variable(renga::Ref<renga::VariableBody>(body));
    return true;
  }
  if (renga::python::is_ndarray(source) && !renga::python::has_known_dtype(source)) {
    renga::python::refuse_dtype(source);
  }
  type_caster<renga::Array> array;
  if (!array.load(source, false)) return false;
  value = renga::Variable(static_cast<renga::Array&>(array));
  return true;
}

}  // namespace pybind11::detail
