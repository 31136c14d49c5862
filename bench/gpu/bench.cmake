add_executable(cairn_gpu_rates ${CMAKE_CURRENT_LIST_DIR}/rates/main.cc ${CMAKE_CURRENT_LIST_DIR}/rates/cases.cc
                               ${CMAKE_CURRENT_LIST_DIR}/rates/links.cc ${CMAKE_CURRENT_LIST_DIR}/rates/runner.cc)
target_link_libraries(cairn_gpu_rates PRIVATE cairn_device cairn_ops)
cairn_portable(cairn_gpu_rates)
