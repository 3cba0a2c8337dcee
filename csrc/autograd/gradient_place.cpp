#include "autograd/gradient_place.h"

#include <utility>

namespace renga {
namespace {

thread_local GradientPlaces all_places;
thread_local const GradientPlaces* open_places = nullptr;
thread_local const Array* current_place = nullptr;

const Array* place_of(const VariableNode& x, const Variable& sum) {
  if (open_places == nullptr || sum.defined()) return nullptr;
  // A gradient from before may be there already.
  if (x.variable == nullptr || x.variable->grad.defined()) return nullptr;
  const auto found = open_places->find(&x);
  return found == open_places->end() ? nullptr : &found->second;
}

}  // namespace

void set_gradient_places(GradientPlaces places) { all_places = std::move(places); }

OpenPlaces::OpenPlaces(bool open)
    : before_(std::exchange(open_places, open && !all_places.empty() ? &all_places : nullptr)) {}

OpenPlaces::~OpenPlaces() { open_places = before_; }

GradientOf::GradientOf(const VariableNode& x, const Variable& sum)
    : before_(std::exchange(current_place, place_of(x, sum))) {}

GradientOf::~GradientOf() { current_place = before_; }

bool lies_in_place(const VariableNode& x, const Array& gradient) {
  const auto found = all_places.find(&x);
  return found != all_places.end() && found->second.data() == gradient.data();
}

Array gradient_array(const Shape& shape, Dtype dtype, Device device) {
  const Array* place = current_place;
  if (place == nullptr || place->shape() != shape || place->dtype() != dtype ||
      place->device() != device || !place->is_contiguous()) {
    return empty(shape, dtype, device);
  }
  current_place = nullptr;
  return *place;
}

}  // namespace renga
