// Which kernels operations have chosen for which problems: what can be shown, kept in a file and
// given back.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace renga {

// Kernels' names by problem: an operation's pass with shapes and options, in words.
using KernelChoices = std::map<std::string, std::string>;

// The kernel for `problem`: the one loaded or chosen before, else what `choose` says, which is
// remembered and told to the observer.
std::string chosen_kernel(const std::string& problem, const std::function<const char*()>& choose);

KernelChoices kernel_choices();
// From now on these win over what operations would choose.
void load_kernel_choices(const KernelChoices& choices);
void forget_kernel_choices();

// Told of every new choice, on the thread of the operation.
extern void (*kernel_observer)(const std::string& problem, const std::string& kernel);

}  // namespace renga
