# The Go module, from an installed prefix. Not with sanitizers: these want the program to be built with them, too.
if(NOT CAIRN_SANITIZE)
  add_test(NAME bindings/go COMMAND ${PYTHON3} -B ${CMAKE_CURRENT_LIST_DIR}/go_test.py ${CMAKE_BINARY_DIR} ${CMAKE_COMMAND}
                                    ${CMAKE_C_COMPILER})
endif()
