// One element or vector through a normalization, its activation and its dropout, forward and
// backward, for the kernels of all devices: L is a vector or single number of the statistics' type
// (simd/vector.h, simd/scalar.h).
#pragma once

#include <limits>

#include "ops/normalization/normalization.h"
#include "ops/random/dropout_mask.h"

namespace renga::normalized {

// Activations of numbers rounded to T, and their gradients given a number with the sign of y.
// Comparisons with NaN are false, as in the operations: the gradient of ReLU is 0 there.
struct Identity {
  RENGA_INLINE static constexpr bool is_none() { return true; }
  template <class T, class L, class V>
  RENGA_INLINE V value(L, const V& v) const {
    return v;
  }
  template <class T, class L, class V>
  RENGA_INLINE V gradient(L, const V&, const V& gy) const {
    return gy;
  }
};

struct Relu {
  RENGA_INLINE static constexpr bool is_none() { return false; }
  // Rounding y later has the same effect as rounding v.
  template <class T, class L, class V>
  RENGA_INLINE V value(L, const V& v) const {
    return v < V{} ? V{} : v;
  }
  template <class T, class L, class V>
  RENGA_INLINE V gradient(L, const V& y, const V& gy) const {
    return y > V{} ? gy : V{};
  }
};

template <class S>
struct LeakyRelu {
  RENGA_INLINE static constexpr bool is_none() { return false; }
  S slope;
  template <class T, class L, class V>
  RENGA_INLINE V value(L, const V& v) const {
    const V rounded = L::template rounded_to<T>(v);
    return rounded < V{} ? rounded * slope : rounded;
  }
  template <class T, class L, class V>
  RENGA_INLINE V gradient(L, const V& y, const V& gy) const {
    return y > V{} ? gy : L::template rounded_to<T>(gy * slope);
  }
};

// None, ReLU or clipped ReLU without branches: numbers within bounds, and NaN, stay as they are.
template <class S>
struct Clamp {
  S least, most;
  template <class T, class L, class V>
  RENGA_INLINE V value(L, const V& v) const {
    const V above = v < V{} + least ? V{} + least : v;
    return above > V{} + most ? V{} + most : above;
  }
};

template <class S>
struct ClippedRelu {
  RENGA_INLINE static constexpr bool is_none() { return false; }
  S limit;
  template <class T, class L, class V>
  RENGA_INLINE V value(L l, const V& v) const {
    return Clamp<S>{0, limit}.template value<T>(l, v);
  }
  template <class T, class L, class V>
  RENGA_INLINE V gradient(L, const V& y, const V& gy) const {
    const V below = y < V{} + limit ? gy : V{};
    return y > V{} ? below : V{};
  }
};

// Any of them, chosen at run time; of the last one, which is fused where there is no graph, the
// value alone.
template <class S>
struct Rectifier {
  RENGA_INLINE static constexpr bool is_none() { return false; }
  Activation::Kind kind;
  S p;
  template <class T, class L, class V>
  RENGA_INLINE V value(L l, const V& v) const {
    if (kind == Activation::Kind::leaky_relu) return LeakyRelu<S>{p}.template value<T>(l, v);
    if (kind == Activation::Kind::clipped_relu) return ClippedRelu<S>{p}.template value<T>(l, v);
    return Relu{}.value<T>(l, v);
  }
  template <class T, class L, class V>
  RENGA_INLINE V gradient(L l, const V& y, const V& gy) const {
    if (kind == Activation::Kind::leaky_relu) {
      return LeakyRelu<S>{p}.template gradient<T>(l, y, gy);
    }
    return Relu{}.gradient<T>(l, y, gy);
  }
};

// These classes say where a kernel reads per-channel numbers: those of one channel for a whole
// plane, or those of adjoining channels.
struct OneChannel {
  std::int64_t c;
  template <class L, class S>
  RENGA_INLINE typename L::V get(L, const S* vector) const {
    return L::broadcast(vector + c);
  }
};
struct AdjoiningChannels {
  std::int64_t c;
  template <class L, class S>
  RENGA_INLINE typename L::V get(L, const S* vector) const {
    return L::load(vector + c);
  }
};
// The only one of a normalization that holds the numbers of one channel.
struct HeldChannel {
  template <class L, class S>
  RENGA_INLINE S get(L, S number) const {
    return number;
  }
};

// A normalization with its types: T of elements, S of statistics, A of the activation. Numbers of
// channels are vectors, or, where they are held, those of one channel.
template <class T, class S, class A, class Numbers = const S*>
struct TypedNormalization {
  const T* x;
  Numbers mean, scale, beta;
  A activation;
  MaskBits mask;  // none without dropout
  S dropout_scale;
  const T* residual;          // nullptr without an addition
  std::int64_t position = 0;  // of the first element in memory

  // Returns the same normalization, starting at a later element and channel.
  RENGA_HOST_DEVICE TypedNormalization from(std::int64_t element, std::int64_t channel) const {
    TypedNormalization shifted = *this;
    shifted.x += element;
    shifted.position += element;
    shifted.mean += channel;
    shifted.scale += channel;
    shifted.beta += channel;
    return shifted;
  }

  // Returns the same normalization for the elements of a channel, whose numbers it holds.
  RENGA_HOST_DEVICE TypedNormalization<T, S, A, S> of_channel(std::int64_t channel) const {
    return {x,    mean[channel], scale[channel], beta[channel], activation,
            mask, dropout_scale, residual,       position};
  }

  template <class L, class Channel>
  RENGA_INLINE typename L::V centred(L l, std::int64_t i, Channel channel) const {
    return L::load(x + i) - channel.get(l, mean);
  }

  // The normalized element, before the activation.
  template <class L, class Channel>
  RENGA_INLINE typename L::V affine(L l, typename L::V centred, Channel channel) const {
    return centred * channel.get(l, scale) + channel.get(l, beta);
  }

  // The output of the activation.
  template <class L>
  RENGA_INLINE typename L::V activated(L l, typename L::V v) const {
    return activation.template value<T>(l, v);
  }

  // The output of the dropout.
  template <class L, class Channel>
  RENGA_INLINE typename L::V output(L l, std::int64_t i, Channel channel) const {
    typename L::V v = affine(l, centred(l, i, channel), channel);
    if (residual != nullptr) v = L::template rounded_to<T>(v) + L::load(residual + i);
    v = activated(l, v);
    return mask ? l.masked(mask.from(position + i), L::template rounded_to<T>(v) * dropout_scale)
                : v;
  }

  // gy through the backward passes of dropout and activation.
  template <class L, class Channel>
  RENGA_INLINE typename L::V gradient(L l, std::int64_t i, typename L::V centred, Channel channel,
                                      const T* gy) const {
    typename L::V g = L::load_apart(gy + i);
    if (mask) g = L::template rounded_to<T>(l.masked(mask.from(position + i), g * dropout_scale));
    if (activation.is_none()) return g;
    if constexpr (std::is_same_v<T, float16>) {
      // Rounding to float16 can make a number 0; rounding to other dtypes cannot.
      const typename L::V y = L::template rounded_to<T>(activated(l, affine(l, centred, channel)));
      return activation.template gradient<T>(l, y, g);
    } else {
      return activation.template gradient<T>(l, affine(l, centred, channel), g);
    }
  }
};

// A normalization of elements of type T.
template <class T, class A>
TypedNormalization<T, Compute<T>, A> typed(const Normalization& normalization, A activation) {
  using S = Compute<T>;
  return {normalization.x.array.as<const T>(),
          normalization.mean.as<const S>(),
          normalization.scale.as<const S>(),
          normalization.beta.as<const S>(),
          activation,
          normalization.dropout ? MaskBits(*normalization.dropout) : MaskBits(),
          normalization.dropout ? static_cast<S>(normalization.dropout->scale) : S(1),
          normalization.residual.defined() ? normalization.residual.as<const T>() : nullptr};
}

// Calls visit(typed) with the type of a normalization's elements, without an activation or with a
// rectifier.
template <class Visit>
void visit_elements(const Normalization& normalization, const Visit& visit) {
  visit_dtype(normalization.x.array.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      const auto [kind, p] = normalization.activation;
      if (kind == Activation::Kind::none) return visit(typed<T>(normalization, Identity{}));
      visit(typed<T>(normalization, Rectifier<Compute<T>>{kind, static_cast<Compute<T>>(p)}));
    }
  });
}

// Calls visit(typed) as visit_elements does, for values alone, which are computed without branches.
template <class Visit>
void visit_values(const Normalization& normalization, const Visit& visit) {
  visit_dtype(normalization.x.array.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      using S = Compute<T>;
      using Kind = Activation::Kind;
      const auto [kind, p] = normalization.activation;
      const S infinity = std::numeric_limits<S>::infinity(), limit = static_cast<S>(p);
      if (kind == Kind::leaky_relu) return visit(typed<T>(normalization, LeakyRelu<S>{limit}));
      visit(typed<T>(normalization, Clamp<S>{kind == Kind::none ? -infinity : 0,
                                             kind == Kind::clipped_relu ? limit : infinity}));
    }
  });
}

// Calls visit(typed) as visit_elements does, with a type for each activation.
template <class Visit>
void visit_types(const Normalization& normalization, const Visit& visit) {
  visit_dtype(normalization.x.array.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      using S = Compute<T>;
      const S p = static_cast<S>(normalization.activation.p);
      switch (normalization.activation.kind) {
        case Activation::Kind::none:
          return visit(typed<T>(normalization, Identity{}));
        case Activation::Kind::relu:
          return visit(typed<T>(normalization, Relu{}));
        case Activation::Kind::leaky_relu:
          return visit(typed<T>(normalization, LeakyRelu<S>{p}));
        case Activation::Kind::clipped_relu:
          return visit(typed<T>(normalization, ClippedRelu<S>{p}));
      }
    }
  });
}

}  // namespace renga::normalized
