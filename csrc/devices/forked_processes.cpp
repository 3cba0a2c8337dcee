// Processes that are forked, as by Python's multiprocessing.
#include <omp.h>
#include <pthread.h>

namespace renga {
namespace {

// OpenMP's threads of the forking thread would not exist in the child, where a parallel region
// would wait for them forever. Both processes start new ones.
void end_threads() { omp_pause_resource_all(omp_pause_hard); }

// A child is most often one of many.
void compute_on_one_thread() { omp_set_num_threads(1); }

[[maybe_unused]] const int registered =
    pthread_atfork(&end_threads, nullptr, &compute_on_one_thread);

}  // namespace
}  // namespace renga
