# The Rust crates against an installed prefix, and the files that are made for them. Sanitized libraries need a runtime that
# a Rust program does not load.
if(TARGET cairn_cli AND NOT CAIRN_SANITIZE)
  set(rust_test ${PYTHON3} ${CMAKE_CURRENT_LIST_DIR}/rust_test.py)
  add_test(NAME bindings/rust COMMAND ${rust_test} crates ${CMAKE_BINARY_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
  add_test(NAME bindings/rust_fresh COMMAND ${rust_test} fresh $<TARGET_FILE:cairn_cli>)
  set_tests_properties(bindings/rust PROPERTIES LABELS install)
  if("$ENV{CAIRN_TEST}" STREQUAL long)  # the sanitized tree is built in a full run, too, but minutes count there
    add_test(NAME bindings/rust_asan COMMAND ${rust_test} asan ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/build/asan)
  endif()
endif()
