# Programs in the README and in the pages of capi/docs are run as printed. Sanitized libraries need a runtime that a plain program
# does not load.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(TARGET cairn_cli AND NOT CAIRN_SANITIZE)
  add_test(NAME readme COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme/readme_test.py ${CMAKE_SOURCE_DIR}
                               $<TARGET_FILE:cairn_cli> $<TARGET_FILE_DIR:cairn>)
endif()
add_test(NAME readme/links COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/tests/readme/links_test.py ${CMAKE_SOURCE_DIR})
