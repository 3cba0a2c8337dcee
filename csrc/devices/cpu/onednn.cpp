#include "devices/cpu/onednn.h"

#include <omp.h>

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

  dnnl::memory add(const dnnl::memory::desc& layout) {
    const std::size_t bytes = layout.get_size();
    blocks_.emplace_back(allocate(bytes, Device{}), bytes);
    return dnnl::memory(layout, engine(), blocks_.back().first);
  }

 private:
  std::vector<std::pair<void*, std::size_t>> blocks_;
};

namespace {

dnnl::stream& stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

void execute(const dnnl::primitive& primitive, std::unordered_map<int, dnnl::memory>& arguments,
             const dnnl::memory::desc& scratchpad, Buffers& buffers) {
  if (scratchpad.get_size() > 0) arguments.emplace(DNNL_ARG_SCRATCHPAD, buffers.add(scratchpad));
  primitive.execute(stream(), arguments);
}

// Called before oneDNN divides its work: what it gives to a thread that OpenMP then does not start
// (OMP_THREAD_LIMIT, OMP_DYNAMIC) is left undone.
void count_on_given_threads() {
  if (omp_get_dynamic()) omp_set_dynamic(0);
  const int limit = omp_get_thread_limit();
  if (omp_get_max_threads() > limit) omp_set_num_threads(limit);
}

}  // namespace

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

Operand::Operand(int name, dnnl::memory::desc outside, dnnl::memory::desc inside, bool is_output)
    : name_(name), outside_(std::move(outside)), inside_(std::move(inside)), is_output_(is_output) {
  if (outside_ == inside_) return;
  const auto& from = is_output ? inside_ : outside_;
  const auto& to = is_output ? outside_ : inside_;
  const dnnl::reorder::primitive_desc move(engine(), from, engine(), to, own_scratchpad());
  move_ = dnnl::reorder(move);
  move_scratchpad_ = move.scratchpad_desc();
}

Operand Operand::input(int name, dnnl::memory::desc outside, dnnl::memory::desc inside) {
  return Operand(name, std::move(outside), std::move(inside), false);
}

Operand Operand::output(int name, dnnl::memory::desc outside, dnnl::memory::desc inside) {
  return Operand(name, std::move(outside), std::move(inside), true);
}

void Operand::move(const dnnl::memory& from, const dnnl::memory& to, Buffers& buffers) const {
  std::unordered_map<int, dnnl::memory> ends{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  execute(move_, ends, move_scratchpad_, buffers);
}

void Plan::run(std::span<void* const> data, int ready) const {
  Buffers buffers;
  std::unordered_map<int, dnnl::memory> arguments;
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    const bool is_inside = static_cast<int>(i) == ready;
    dnnl::memory memory(is_inside ? operand.inside_ : operand.outside_, engine(), data[i]);
    if (operand.move_ && !is_inside) {
      const dnnl::memory outside = std::exchange(memory, buffers.add(operand.inside_));
      if (!operand.is_output_) operand.move(outside, memory, buffers);
    }
    arguments.emplace(operand.name_, std::move(memory));
  }
  execute(primitive_, arguments, scratchpad_, buffers);
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const Operand& operand = operands_[i];
    if (!operand.move_ || !operand.is_output_) continue;
    operand.move(arguments.at(operand.name_), dnnl::memory(operand.outside_, engine(), data[i]),
                 buffers);
  }
  stream().wait();
}

bool Plan::is_gemm() const {
  const char* implementation = nullptr;
  dnnl_primitive_desc_query(primitive_.get_primitive_desc(), dnnl_query_impl_info_str, 0,
                            &implementation);
  return std::string_view(implementation).find("gemm:") != std::string_view::npos;
}

std::size_t Plan::inside_bytes(int operand) const {
  const Operand& input = operands_[static_cast<std::size_t>(operand)];
  return input.move_ ? input.inside_.get_size() : 0;
}

void Plan::bring(int operand, void* from, void* inside) const {
  const Operand& input = operands_[static_cast<std::size_t>(operand)];
  Buffers buffers;
  input.move(dnnl::memory(input.outside_, engine(), from),
             dnnl::memory(input.inside_, engine(), inside), buffers);
  stream().wait();
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

std::size_t Plans::Hash::operator()(const Key& key) const {
  std::size_t hash = 0xcbf29ce484222325u;
  for (std::int64_t v : key) hash = (hash ^ static_cast<std::size_t>(v)) * 0x100000001b3u;
  return hash;
}

std::shared_ptr<const Plan> Plans::get(Key key, const std::function<Plan()>& make) {
  // A primitive is cut to the number of threads there are when it is made.
  count_on_given_threads();
  key.push_back(omp_get_max_threads());
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(key);
    if (found != kept_.end()) return found->second;
  }
  auto plan = std::make_shared<const Plan>(make());
  const std::lock_guard lock(mutex_);
  if (kept_.size() >= kMost) kept_.clear();
  return kept_.emplace(std::move(key), std::move(plan)).first->second;
}

}  // namespace renga::onednn
