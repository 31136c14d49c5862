# What depends on the instruction set, with lower ones than this processor's: isa/<set>/<suite>. Suites are what the
# kernels compute, the golden curves, and that plans never change bits.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
if(TARGET cairn_cli AND NOT CAIRN_SANITIZE)
  set(isa_sets avx512_bf16 avx512 avx2 portable)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(isa_sets sve neon_bf16 neon portable)
  endif()
  set(isa_suites kernels conformance golden runtime/exec)
  set(isa_filter_kernels "*")
  set(isa_filter_conformance "Backend.*")
  set(isa_filter_golden "*FollowPyTorch*:*MixedPrecision*:*AgreesWith*:*AgreeWith*")
  set(isa_filter_runtime/exec "*InPlace.SameBits*:*SameBits.UnderEveryPolicy/cpu_mlp")
  foreach(set ${isa_sets})
    foreach(suite ${isa_suites})
      string(REPLACE "/" "_" program test_${suite})
      add_test(NAME isa/${set}/${suite}
               COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/run.py $<TARGET_FILE:cairn_cli> ${set}
                       $<TARGET_FILE:${program}> --gtest_brief=0 --gtest_filter=${isa_filter_${suite}})
      set_tests_properties(isa/${set}/${suite} PROPERTIES SKIP_RETURN_CODE 77)
    endforeach()
  endforeach()
endif()
