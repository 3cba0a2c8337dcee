# Run by `cmake --install`, after `sources` and `folders` are set.
set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/renga/include/renga")
foreach(source IN LISTS sources)
  file(GLOB_RECURSE headers RELATIVE ${source} ${source}/*.h)
  list(FILTER headers EXCLUDE REGEX
    "(^|/)(cpu|cuda|python|compression|planning|nccl|mpi)/|^(data_parallel/)?module\\.h$|\\.(cpu|cu)\\.h$")
  foreach(header IN LISTS headers)
    file(READ ${source}/${header} text)
    string(REGEX REPLACE "#include \"((${folders})[/.])" "#include \"renga/\\1" text "${text}")
    string(REGEX REPLACE "^renga/" "" header ${header})
    file(WRITE ${to}/${header} "${text}")
  endforeach()
endforeach()
