# How many files a new row touches, and that it works. Not with sanitizers: they would only slow the compiler down.
if(TARGET cairn_cli AND NOT CAIRN_SANITIZE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(row_libraries $<TARGET_FILE:cairn_cuda_emulated> $<TARGET_FILE:cairn_device> $<TARGET_FILE:cairn_device_cpu>
                    $<TARGET_FILE:cairn_cpu> $<TARGET_FILE:cairn_reference> $<TARGET_FILE:cairn_base>)
  add_test(NAME rows/op_test COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/op_test.py ${CMAKE_BINARY_DIR}
                                     ${row_libraries} -lhwy -lxxhash -lpthread -ldl)
  add_test(NAME rows/optimizer_test COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/optimizer_test.py
                                            ${CMAKE_BINARY_DIR})
  add_test(NAME rows/counter_test COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/counter_test.py
                                          ${CMAKE_BINARY_DIR})
endif()
