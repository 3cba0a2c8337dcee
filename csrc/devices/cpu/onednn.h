// oneDNN: the process's engine, a stream per thread, and plans: primitives kept for the next call
// together with the reorders to the layouts they want.
#pragma once

#include <atomic>
#include <cstdint>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "devices/forked_processes.h"
#include "devices/numbers_hash.h"

namespace renga::onednn {

const dnnl::engine& engine();

// Everything a plan or a layout depends on, as a row of numbers.
using Key = std::vector<std::int64_t>;

class Buffers;

// Brings an operand from one layout to another one.
using Move = std::function<void(const void* from, void* to)>;

// An Operand says what an operand is to the caller and to the primitive.
class Operand {
 public:
  // `name` is a DNNL_ARG. An input is brought from `outside` to `inside` before the primitive runs,
  // an output back from `inside` to `outside` after it: by `move`, or by oneDNN where that is
  // empty.
  static Operand input(int name, dnnl::memory::desc outside, dnnl::memory::desc inside,
                       Move move = {});
  static Operand output(int name, dnnl::memory::desc outside, dnnl::memory::desc inside);

 private:
  friend class Plan;
  Operand(int name, dnnl::memory::desc outside, dnnl::memory::desc inside, bool is_output,
          Move move);

  int name_;
  dnnl::memory::desc outside_, inside_;
  bool is_output_;
  Move move_;  // empty where both layouts are one
};

// The operands of a call by name. Making them takes as long as a small call.
using Arguments = std::unordered_map<int, dnnl::memory>;

// Those of calls that have ended, for the next ones.
class IdleArguments {
 public:
  std::optional<Arguments> take();
  void give(Arguments arguments);

 private:
  std::vector<Arguments> all_;
};

// A primitive with its operands. It may run on several threads at once.
class Plan {
 public:
  // The primitive's scratchpad must be the user's (see own_scratchpad).
  Plan(dnnl::primitive primitive, dnnl::memory::desc scratchpad, std::vector<Operand> operands)
      : primitive_(std::move(primitive)),
        scratchpad_(std::move(scratchpad)),
        operands_(std::move(operands)) {}

  // Whether the primitive multiplies matrices, with the order of sums depending on the number of
  // threads.
  bool is_gemm() const;
  // Whether the primitive is a loop over single numbers, a hundred times as slow as others.
  bool is_reference() const;
  // Whether its results on its number of threads have the bits of those on one; who runs it finds
  // out.
  enum class Bits : std::uint8_t { unknown, of_one_thread, others };
  std::atomic<Bits>& bits() const { return *bits_; }

  // `data` holds one pointer per operand, in their order. That of operand `ready`, if it is one, is
  // inside already.
  void run(std::span<void* const> data, int ready = -1) const;

  // Returns the bytes that an input takes as the primitive wants it; 0 where the caller has it so.
  std::size_t inside_bytes(int operand) const;
  void bring(int operand, const void* from, void* inside) const;
  // Identifies a layout, by everything that it consists of.
  Key inside_key(int operand) const;

 private:
  std::string_view implementation() const;
  Arguments make_arguments() const;

  dnnl::primitive primitive_;
  dnnl::memory::desc scratchpad_;
  std::vector<Operand> operands_;
  std::shared_ptr<IdleArguments> idle_ = std::make_shared<IdleArguments>();
  std::shared_ptr<std::atomic<Bits>> bits_ = std::make_shared<std::atomic<Bits>>(Bits::unknown);
};

// Attributes by which a primitive takes its scratchpad from the caller: oneDNN's own belongs to the
// thread that made the primitive.
dnnl::primitive_attr own_scratchpad();

// Making a primitive takes far longer than looking one up, so plans are kept.
class Plans {
 public:
  // The plan for `key`, which need not hold the number of threads. oneDNN keeps primitives, too,
  // under locks of its own: so only one thread makes a plan.
  std::shared_ptr<const Plan> get(Key key, const std::function<Plan()>& make);

 private:
  // A program with ever new shapes must not fill the memory: a full table is emptied.
  static constexpr std::size_t kMost = 1024;

  ForkMutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Plan>, NumbersHash> kept_;
};

}  // namespace renga::onednn
