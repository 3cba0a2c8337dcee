/* MPI_Allreduce of float32 in place: prints the median microseconds of rank 0 for the sizes in
   bytes given, one per line. tests/benchmarks/all_reduce.py compiles and runs it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* `argv` holds pairs: a size and a number of rounds. */
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i + 1 < argc; i += 2) {
    const size_t bytes = strtoull(argv[i], NULL, 10);
    const int rounds = atoi(argv[i + 1]), discarded = 3;
    float* x = malloc(bytes);
    memset(x, 0, bytes);
    double* times = malloc((size_t)rounds * sizeof(double));
    for (int k = -discarded; k < rounds; ++k) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, x, (int)(bytes / sizeof(float)), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      if (k >= 0) times[k] = MPI_Wtime() - start;
    }
    qsort(times, (size_t)rounds, sizeof(double), ascending);
    if (rank == 0) printf("%.3f\n", times[rounds / 2] * 1e6);
    free(times);
    free(x);
  }
  MPI_Finalize();
  return 0;
}
