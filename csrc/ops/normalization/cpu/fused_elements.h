// What a normalization, the activation and the dropout after it make of elements, forward and back.
#pragma once

#include "ops/normalization/normalization.h"
#include "ops/random/cpu/dropout_mask.h"
#include "simd/vector.h"

namespace renga::normalized {

// Activations of numbers v as T holds them, and what they make of a gradient, given y or another
// number of its sign. Comparisons with NaN are false: as in the operations of these names, ReLU's
// gradient is then 0.
struct Identity {
  static constexpr bool is_identity = true;
};

struct Relu {
  static constexpr bool is_identity = false;
  // Rounding y does the same as rounding v before.
  template <class T, class L, class V>
  [[gnu::always_inline]] V value(L, const V& v) const {
    return v < V{} ? V{} : v;
  }
  template <class T, class L, class V>
  [[gnu::always_inline]] V gradient(L, const V& y, const V& gy) const {
    return y > V{} ? gy : V{};
  }
};

template <class S>
struct LeakyRelu {
  static constexpr bool is_identity = false;
  S slope;
  template <class T, class L, class V>
  [[gnu::always_inline]] V value(L, const V& v) const {
    const V kept = L::template rounded_to<T>(v);
    return kept < V{} ? kept * slope : kept;
  }
  template <class T, class L, class V>
  [[gnu::always_inline]] V gradient(L, const V& y, const V& gy) const {
    return y < V{} ? L::template rounded_to<T>(gy * slope) : gy;
  }
};

// A channel's numbers in planes of one channel each, and those of adjoining channels.
struct OfPlane {
  std::int64_t c;
  template <class L, class S>
  [[gnu::always_inline]] typename L::V get(L, const S* vector) const {
    return L::broadcast(vector + c);
  }
};
struct OfRow {
  std::int64_t c;
  template <class L, class S>
  [[gnu::always_inline]] typename L::V get(L, const S* vector) const {
    return L::load(vector + c);
  }
};

// A normalization with the types of its elements, statistics and activation.
template <class T, class S, class A>
struct Typed {
  const T* x;
  const S *mean, *scale, *beta;
  A activation;
  DropMask mask;  // none without a dropout
  S drop_scale;
  std::int64_t place = 0;  // of the first element in memory

  // The same for elements and channels further on.
  Typed from(std::int64_t element, std::int64_t channel) const {
    Typed further = *this;
    further.x += element;
    further.place += element;
    further.mean += channel;
    further.scale += channel;
    further.beta += channel;
    return further;
  }

  template <class L, class Of>
  [[gnu::always_inline]] typename L::V centred(L l, std::int64_t i, Of of) const {
    return L::load(x + i) - of.get(l, mean);
  }

  template <class L, class Of>
  [[gnu::always_inline]] typename L::V before(L l, typename L::V centred, Of of) const {
    return centred * of.get(l, scale) + of.get(l, beta);
  }

  // Of the activation.
  template <class L, class Of>
  [[gnu::always_inline]] typename L::V value(L l, typename L::V centred, Of of) const {
    const typename L::V v = before(l, centred, of);
    if constexpr (A::is_identity) {
      return v;
    } else {
      return activation.template value<T>(l, v);
    }
  }

  // Of the dropout after it.
  template <class L, class Of>
  [[gnu::always_inline]] typename L::V dropped_value(L l, std::int64_t i, Of of) const {
    const typename L::V v = value(l, centred(l, i, of), of);
    return mask ? l.masked(mask.from(place + i), L::template rounded_to<T>(v) * drop_scale) : v;
  }

  // What dropout and activation make of the gradient from `gy` on.
  template <class L, class Of>
  [[gnu::always_inline]] typename L::V gradient(L l, std::int64_t i, typename L::V centred, Of of,
                                                const T* gy) const {
    typename L::V g = simd::force_load(L::load(gy + i));
    if (mask) g = L::template rounded_to<T>(l.masked(mask.from(place + i), g * drop_scale));
    if constexpr (A::is_identity) {
      return g;
    } else if constexpr (std::is_same_v<T, float16>) {
      // Numbers near 0 become 0 in float16, and in no other dtype.
      const typename L::V y = L::template rounded_to<T>(value(l, centred, of));
      return activation.template gradient<T>(l, y, g);
    } else {
      return activation.template gradient<T>(l, before(l, centred, of), g);
    }
  }
};

// Calls visit(typed) with the types of a normalization.
template <class Visit>
void visit_types(const Normalization& of, const Visit& visit) {
  visit_dtype(of.x.array.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      using S = Compute<T>;
      const DropMask mask = of.drop ? DropMask(of.drop->mask) : DropMask();
      const S scale = of.drop ? static_cast<S>(of.drop->scale) : S(1);
      const auto with = [&](auto activation) {
        visit(Typed<T, S, decltype(activation)>{of.x.array.as<const T>(), of.mean.as<const S>(),
                                                of.scale.as<const S>(), of.beta.as<const S>(),
                                                activation, mask, scale});
      };
      switch (of.activation.kind) {
        case Activation::Kind::none:
          return with(Identity{});
        case Activation::Kind::relu:
          return with(Relu{});
        case Activation::Kind::leaky_relu:
          return with(LeakyRelu<S>{static_cast<S>(of.activation.slope)});
      }
    }
  });
}

}  // namespace renga::normalized
