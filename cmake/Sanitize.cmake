# RENGA_SANITIZE: everything is compiled and linked with the sanitizers it names, and with the
# standard library's own checks of indices; `assertions` are those checks alone. ASAN_OPTIONS,
# UBSAN_OPTIONS and TSAN_OPTIONS say whether a report ends the process. `guards` are blocks that end
# at unmapped pages, and the code is compiled as for a release. RENGA_OPTIMIZE is for hot loops.
set_property(CACHE RENGA_SANITIZE PROPERTY STRINGS "" assertions address thread guards)
if(RENGA_SANITIZE STREQUAL "address")
  # -fsanitize=undefined leaves casts of floats out; vptr wants type information of third parties.
  set(sanitizers -fsanitize=address,undefined,float-cast-overflow -fno-sanitize=vptr
    -fsanitize-recover=address,undefined,float-cast-overflow)
elseif(RENGA_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
elseif(RENGA_SANITIZE STREQUAL "guards")
  add_compile_definitions(RENGA_GUARDS)
elseif(RENGA_SANITIZE AND NOT RENGA_SANITIZE STREQUAL "assertions")
  message(FATAL_ERROR
    "RENGA_SANITIZE: expected assertions, address, thread or guards, got ${RENGA_SANITIZE}")
endif()
set(RENGA_OPTIMIZE -O3)
if(RENGA_SANITIZE AND NOT RENGA_SANITIZE STREQUAL "guards")
  set(RENGA_OPTIMIZE -O1)
  add_compile_options(${sanitizers} -g1 -O1 -fno-omit-frame-pointer)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(${sanitizers})
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
endif()
