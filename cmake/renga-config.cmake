# Targets: renga::renga and, with MPI or without, renga::communicators.
include(${CMAKE_CURRENT_LIST_DIR}/renga-targets.cmake)
