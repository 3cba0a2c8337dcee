# Targets: renga::renga and, with MPI or without, renga::communicators; renga::cuda in a build with
# RENGA_CUDA.
include(${CMAKE_CURRENT_LIST_DIR}/renga-targets.cmake)
