# What `./dev test quick` runs: the label `quick`. Whole entries of every folder that take a second or two, and of long
# suites a share, which only the configuration `quick` of ctest has (`ctest -C quick -L quick`).
set(quick_tests
    arrows unnamed pure sizes names words dev format luacheck
    runtime/base runtime/ops runtime/report runtime/graph runtime/device runtime/costs runtime/data runtime/io
    kernels conformance golden compat fault fuzz bench cuda/needs
    capi capi/src capi/header capi/contract capi/abi capi/dependencies capi/examples/train.c capi/examples/plan.c
    bindings/cdef_fresh bindings/graph_test bindings/nn_test bindings/train_test bindings/luajit bindings/rock
    install/versions pages
    embedding/environment fault/memory isa/avx2/kernels
    scripts/usage_test scripts/golden_test)
foreach(test ${quick_tests})
  if(TEST ${test})
    set_property(TEST ${test} APPEND PROPERTY LABELS quick)
  endif()
endforeach()

# cairn_quick_share(SUITE FILTER): the tests of SUITE's program that FILTER names.
function(cairn_quick_share suite filter)
  string(REPLACE "/" "_" program test_${suite})
  if(TARGET ${program})
    add_test(NAME quick/${suite} COMMAND ${program} --gtest_filter=${filter} CONFIGURATIONS quick)
    set_tests_properties(quick/${suite} PROPERTIES LABELS quick)
  endif()
endfunction()
cairn_quick_share(runtime/plan "Check.*:Closure.*:Explain.*:Index.*:Json*:Lanes.*:Layout.*:Rules.*:Sequence.*:Stages.*:Text.*")
cairn_quick_share(runtime/compile "Lower.*:Update.*:InPlaceChoice.*")
cairn_quick_share(runtime/exec "Devices/SameBits.WithAShare*_mlp")
cairn_quick_share(runtime/step "Parameters.*:Schedule.*:Stepper.*")
cairn_quick_share(planner "BadBudget.*:Extreme.*:LongJson.*:*BadProblem*")
cairn_quick_share(cuda "CudaElementwise.*:CudaEmulation.*:CudaLinear.*")
