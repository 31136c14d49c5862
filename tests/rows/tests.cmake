# How many files a new row touches, and that it works. Not with sanitizers: they would only slow the compiler down.
if(TARGET cairn_cli AND NOT CAIRN_SANITIZE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(row_libraries $<TARGET_FILE:cairn_cuda_emulated> $<TARGET_FILE:cairn_device> $<TARGET_FILE:cairn_device_cpu>
                    $<TARGET_FILE:cairn_cpu> $<TARGET_FILE:cairn_reference> $<TARGET_FILE:cairn_base>)
  add_test(NAME rows/op_test COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/op_test.py ${CMAKE_BINARY_DIR}
                                     ${row_libraries} -lhwy -lxxhash -lpthread -ldl)
  set(session_libraries ${row_libraries})
  foreach(layer cairn_io cairn_step cairn_exec cairn_compile cairn_costs cairn_graph cairn_ops cairn_plan cairn_data
                cairn_device_check cairn_formats)
    list(APPEND session_libraries $<TARGET_FILE:${layer}>)
  endforeach()
  add_test(NAME rows/format_test COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/format_test.py ${CMAKE_BINARY_DIR}
                                         ${session_libraries} -lsimdjson -lhwy -lxxhash -lonig -lutf8proc -lpthread -ldl)
  add_test(NAME rows/optimizer_test COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/optimizer_test.py
                                            ${CMAKE_BINARY_DIR})
  add_test(NAME rows/counter_test COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/counter_test.py
                                          ${CMAKE_BINARY_DIR})
endif()
