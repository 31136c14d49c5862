# Programs outside, from an installed prefix. Not with sanitizers: these want the program to be built with them, too.
if(NOT CAIRN_SANITIZE)
  find_program(PYTHON3 python3 REQUIRED)
  add_test(NAME install COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/tests/install/install_test.py ${CMAKE_BINARY_DIR}
                                ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
  set_tests_properties(install PROPERTIES LABELS install)
endif()
