# AArch64 under qemu's emulation: aarch64/<processor>/<suite>, of the programs in build/aarch64. `./dev test long` sets the list
# after it built them, where `./dev deps aarch64` was run. An emulated program takes some fifty times as long as one that is not:
# what depends on the instruction set runs on every processor, the rest on one, and of long suites a share.
set(CAIRN_AARCH64_TESTS "" CACHE STRING "suites to run in build/aarch64")
set(aarch64_root ${CMAKE_SOURCE_DIR}/build/deps/aarch64/usr/lib/aarch64-linux-gnu)
set(aarch64_emulator qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=${aarch64_root})

# Processors as qemu names them, and the set of kernels that each is to use: the one it gets without asking, or a lower one.
set(aarch64_processors
    "all max,sve-max-vq=2 sve_bf16"    # 256 bits, as Neoverse V1
    "sve128 max,sve-max-vq=1 sve_bf16" "sve512 max,sve-max-vq=4 sve_bf16"
    "a64fx a64fx sve"                  # SVE, and nothing that multiplies bfloat16
    "neon_bf16 max neon_bf16" "neon cortex-a72 neon" "portable cortex-a72 portable")
set(aarch64_filter_kernels "*")
set(aarch64_filter_conformance "Backend.*-*AnyNumberOfThreads")
set(aarch64_filter_golden "*MixedPrecision*:Adamw8*:Families*:Optimizers*")
set(aarch64_filter_runtime/exec "*InPlace.SameBits*:*SameBits.UnderEveryPolicy/cpu_mlp")
set(aarch64_filter_runtime/step "*")
set(aarch64_filter_planner "BadBudget.*:Extreme.*:LongJson.*:*BadProblem*")
set(aarch64_filter_capi "*")
set(aarch64_on_one runtime/step planner capi)

foreach(row ${aarch64_processors})
  separate_arguments(row UNIX_COMMAND "${row}")
  list(POP_FRONT row name processor isa)
  foreach(suite ${CAIRN_AARCH64_TESTS})
    if(suite IN_LIST aarch64_on_one AND NOT name STREQUAL all)
      continue()
    endif()
    string(REPLACE "/" "_" program test_${suite})
    add_test(NAME aarch64/${name}/${suite}
             COMMAND ${aarch64_emulator} -cpu ${processor} ${CMAKE_SOURCE_DIR}/build/aarch64/bin/${program}
                     --gtest_filter=${aarch64_filter_${suite}})
    set_tests_properties(aarch64/${name}/${suite} PROPERTIES ENVIRONMENT "CAIRN_ISA=${isa};CAIRN_TEST=full" COST 200)
  endforeach()
endforeach()
