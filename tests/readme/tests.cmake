# Programs in the README are run as printed. Sanitized libraries need a runtime that a plain program does not load.
if(TARGET cairn_cli AND NOT CAIRN_SANITIZE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME readme COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme/readme_test.py ${CMAKE_SOURCE_DIR}
                               $<TARGET_FILE:cairn_cli> $<TARGET_FILE_DIR:cairn>)
  cairn_brief_command(readme)
endif()
