#include "ops/filter_forms.h"

namespace renga {

Array FilterForms::get(const Key& key, const std::function<Array()>& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = forms_.find(key);
    if (found != forms_.end()) return found->second;
  }
  const Array form = make();
  const std::lock_guard lock(mutex_);
  return forms_.emplace(key, form).first->second;
}

Ref<FilterForms> filter_forms(const Variable& W) {
  if (backprop_enabled()) return nullptr;
  VariableBody& body = *W.body();
  const Ref<FilterForms> kept(static_cast<FilterForms*>(body.cache.get()));
  if (kept && kept->fits(W.array())) return kept;
  body.cache = body.is_exclusive() ? make_ref<FilterForms>(W.array().storage()->exposures()) : nullptr;
  return nullptr;
}

}  // namespace renga
