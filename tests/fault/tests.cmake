# The system calls that these tests fail, and the file system that loses power.
target_sources(test_fault PRIVATE ${CMAKE_CURRENT_LIST_DIR}/calls.cc ${CMAKE_CURRENT_LIST_DIR}/disk.cc
                                  ${CMAKE_CURRENT_LIST_DIR}/run.cc)
target_sources(test_fault_device PRIVATE ${CMAKE_CURRENT_LIST_DIR}/device/training.cc)
