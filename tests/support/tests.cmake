# The tests' own tools.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME support/not_run COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/not_run_test.py)
