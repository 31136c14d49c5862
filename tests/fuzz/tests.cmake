# test_fuzz: the targets over mutated samples and over the corpora, in every build. With CAIRN_FUZZ (clang): fuzz_<target>,
# libFuzzer programs; run.py runs them.
set(fuzz_dir ${CMAKE_CURRENT_LIST_DIR})
add_library(cairn_fuzz_targets STATIC ${fuzz_dir}/targets.cc ${fuzz_dir}/plan_solve.cc ${fuzz_dir}/data_targets.cc
                                      ${fuzz_dir}/pretrained_target.cc ${fuzz_dir}/template_target.cc
                                      ${fuzz_dir}/checkpoint_target.cc ${fuzz_dir}/lua_targets.cc
                                      ${fuzz_dir}/picture_targets.cc)
target_link_libraries(cairn_fuzz_targets PUBLIC cairn_plan_checked cairn_io cairn_template cairn_pictures PkgConfig::luajit)
target_compile_definitions(cairn_fuzz_targets PUBLIC CAIRN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
if(CAIRN_TESTS)
  add_executable(test_fuzz ${fuzz_dir}/replay_test.cc)
  target_link_libraries(test_fuzz PRIVATE GTest::gtest_main cairn_fuzz_targets)
  add_test(NAME fuzz COMMAND test_fuzz)
endif()
if(CAIRN_FUZZ)
  target_compile_options(cairn_flags INTERFACE -fsanitize=fuzzer-no-link)
  file(STRINGS ${fuzz_dir}/targets.cc rows REGEX "^    {\"[a-z_]+\", ")  # the table of targets
  foreach(row ${rows})
    string(REGEX REPLACE "^ *{\"([a-z_]+)\".*" "\\1" target "${row}")
    add_executable(fuzz_${target} ${fuzz_dir}/fuzz.cc)
    target_compile_definitions(fuzz_${target} PRIVATE CAIRN_FUZZ_TARGET="${target}")
    target_link_libraries(fuzz_${target} PRIVATE cairn_fuzz_targets)
    target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer)
    list(APPEND fuzz_programs fuzz_${target})
  endforeach()
  add_custom_target(fuzz_programs DEPENDS ${fuzz_programs})
endif()
