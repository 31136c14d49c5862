# Manual pages and completions: they say what --help says, and shells take them. The reference: it is what the tables give.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(NOT CAIRN_SANITIZE)
  add_test(NAME pages COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/pages_test.py)
  set_tests_properties(pages PROPERTIES ENVIRONMENT "CAIRN=$<TARGET_FILE:cairn_cli>;PAGES=${CMAKE_BINARY_DIR}/pages")
  add_test(NAME pages/reference COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/reference_test.py)
  set_tests_properties(pages/reference PROPERTIES ENVIRONMENT "CAIRN=$<TARGET_FILE:cairn_cli>")
  cairn_brief_command(pages/reference)
endif()
