// Processes that are forked, as by Python's multiprocessing.
#include <omp.h>
#include <pthread.h>

namespace renga {
namespace {

// OpenMP's threads of the forking thread do not exist in the child, where the next parallel region
// would wait for them forever.
void compute_on_one_thread() { omp_set_num_threads(1); }

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, &compute_on_one_thread);

}  // namespace
}  // namespace renga
