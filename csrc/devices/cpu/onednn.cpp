#include "devices/cpu/onednn.h"

#include <omp.h>

#include <array>
#include <mutex>
#include <utility>

#include "devices/allocator.h"

namespace renga::onednn {

// Memory that primitives need for the length of a call.
class Buffers {
 public:
  Buffers() = default;
  ~Buffers() {
    for (const auto& [data, bytes] : blocks_) deallocate(data, bytes, Device{});
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  void* add(const dnnl::memory::desc& layout) {
    const std::size_t bytes = layout.get_size();
    blocks_.emplace_back(allocate(bytes, Device{}), bytes);
    return blocks_.back().first;
  }

 private:
  std::vector<std::pair<void*, std::size_t>> blocks_;
};

namespace {

Move reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc description(engine(), from, engine(), to, own_scratchpad());
  const auto plan = std::make_shared<const Plan>(
      dnnl::reorder(description), description.scratchpad_desc(),
      std::vector{Operand::input(DNNL_ARG_FROM, from, from), Operand::output(DNNL_ARG_TO, to, to)});
  return [plan](const void* source, void* destination) {
    plan->run(std::array{const_cast<void*>(source), destination});
  };
}

// Called before oneDNN divides its work: what it gives to a thread that OpenMP then does not start
// (OMP_THREAD_LIMIT, OMP_DYNAMIC) is left undone.
void count_on_given_threads() {
  if (omp_get_dynamic()) omp_set_dynamic(0);
  const int limit = omp_get_thread_limit();
  if (omp_get_max_threads() > limit) omp_set_num_threads(limit);
}

ForkMutex idle_arguments;  // of all plans

}  // namespace

std::optional<Arguments> IdleArguments::take() {
  const std::lock_guard lock(idle_arguments);
  if (all_.empty()) return std::nullopt;
  Arguments last = std::move(all_.back());
  all_.pop_back();
  return last;
}

void IdleArguments::give(Arguments arguments) {
  const std::lock_guard lock(idle_arguments);
  all_.push_back(std::move(arguments));
}

const dnnl::engine& engine() {
  // Never destroyed: arrays and plans may outlive every static of this library.
  static const auto* const cpu = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *cpu;
}

dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Operand::Operand(int name, dnnl::memory::desc outside, dnnl::memory::desc inside, bool is_output,
                 Move move)
    : name_(name), outside_(std::move(outside)), inside_(std::move(inside)), is_output_(is_output) {
  if (outside_ == inside_) return;
  move_ = move ? std::move(move)
               : reorder(is_output ? inside_ : outside_, is_output ? outside_ : inside_);
}

Operand Operand::input(int name, dnnl::memory::desc outside, dnnl::memory::desc inside, Move move) {
  return Operand(name, std::move(outside), std::move(inside), false, std::move(move));
}

Operand Operand::output(int name, dnnl::memory::desc outside, dnnl::memory::desc inside) {
  return Operand(name, std::move(outside), std::move(inside), true, {});
}

Arguments Plan::make_arguments() const {
  Arguments arguments;
  const auto add = [&](int name, const dnnl::memory::desc& layout) {
    arguments.emplace(name, dnnl::memory(layout, engine(), nullptr));
  };
  for (const Operand& operand : operands_) add(operand.name_, operand.inside_);
  if (scratchpad_.get_size() > 0) add(DNNL_ARG_SCRATCHPAD, scratchpad_);
  return arguments;
}

void Plan::run(std::span<void* const> data, int ready) const {
  Buffers buffers;
  std::optional<Arguments> kept = idle_->take();
  Arguments arguments = kept ? std::move(*kept) : make_arguments();
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    void* inside = data[i];
    if (operand.move_ && static_cast<int>(i) != ready) {
      inside = buffers.add(operand.inside_);
      if (!operand.is_output_) operand.move_(data[i], inside);
    }
    arguments.at(operand.name_).set_data_handle(inside);
  }
  if (scratchpad_.get_size() > 0) {
    arguments.at(DNNL_ARG_SCRATCHPAD).set_data_handle(buffers.add(scratchpad_));
  }
  // oneDNN does not say that threads may share a stream.
  dnnl::stream stream(engine());
  primitive_.execute(stream, arguments);
  stream.wait();
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    if (!operand.move_ || !operand.is_output_) continue;
    operand.move_(arguments.at(operand.name_).get_data_handle(), data[i]);
  }
  idle_->give(std::move(arguments));
}

std::string_view Plan::implementation() const {
  const char* name = nullptr;
  dnnl_primitive_desc_query(primitive_.get_primitive_desc(), dnnl_query_impl_info_str, 0, &name);
  return name;
}

bool Plan::is_gemm() const { return implementation().find("gemm:") != std::string_view::npos; }

bool Plan::is_reference() const { return implementation().starts_with("ref"); }

std::size_t Plan::inside_bytes(int operand) const {
  const Operand& input = operands_[static_cast<std::size_t>(operand)];
  return input.move_ ? input.inside_.get_size() : 0;
}

void Plan::bring(int operand, const void* from, void* inside) const {
  operands_[static_cast<std::size_t>(operand)].move_(from, inside);
}

Key Plan::inside_key(int operand) const {
  const dnnl::memory::desc& layout = operands_[static_cast<std::size_t>(operand)].inside_;
  Key key{static_cast<std::int64_t>(layout.get_data_type())};
  for (const auto& part : {layout.get_dims(), layout.get_padded_dims(), layout.get_strides(),
                           layout.get_inner_blks(), layout.get_inner_idxs()}) {
    key.insert(key.end(), part.begin(), part.end());
  }
  return key;
}

std::shared_ptr<const Plan> Plans::get(Key key, const std::function<Plan()>& make) {
  // A primitive is cut to the number of threads there are when it is made.
  count_on_given_threads();
  key.push_back(omp_get_max_threads());
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(key);
  if (found != kept_.end()) return found->second;
  auto plan = std::make_shared<const Plan>(make());
  if (kept_.size() >= kMost) kept_.clear();
  return kept_.emplace(std::move(key), std::move(plan)).first->second;
}

}  // namespace renga::onednn
