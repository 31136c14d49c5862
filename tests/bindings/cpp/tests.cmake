# The C++ wrapper, as programs compile it. Not with sanitizers: these want the program to be built with them, too.
if(NOT CAIRN_SANITIZE)
  add_test(NAME bindings/cpp COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/cpp_test.py ${CMAKE_CXX_COMPILER}
                                     $<TARGET_FILE:cairn> $<TARGET_FILE:example_train_c> $<TARGET_FILE:example_train_cpp>)
endif()
