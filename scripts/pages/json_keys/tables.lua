-- Commands that list the parts of cairn.
return {
  {
    command = "devices",
    keys = {
      { "[].name", "as `--device` takes it" },
      { "[].{description, isa}", "processor or GPU; the instruction set in use" },
      { "[].{memory_bytes, threads}", "what there is" },
      { "[].fast_bf16", "whether products of bfloat16 are faster than float32's" },
      { "[].disk_access", "of a disk tier in $TMPDIR or /tmp: `direct`, past the page cache; `buffered`; `memory`, " ..
        "on tmpfs; `none`" },
    },
  },
  {
    command = "devices --models",
    keys = {
      { "[].model", "as `--device-model` takes it" },
      { "[].{name, sources}", "the device, and where each number comes from" },
      { "[].memory_bytes", "of the device" },
      { "[].{f32_flops_per_second, bf16_flops_per_second, f16_flops_per_second, memory_bytes_per_second}",
        "that plans are made with" },
      { "[].links[].{tier, latency_seconds, out_bytes_per_second, in_bytes_per_second, both_ways_factor}",
        "copies to that tier and back" },
      { "[].links[].capacity_bytes", "that the tier has room for; 0: no limit" },
    },
  },
  {
    command = "ops",
    keys = {
      { "[].{name, description, amp_class}", "of each op" },
      { "[].{inputs, outputs}[].{name, optional}", "operands, in order" },
      { "[].attributes[].{name, type, required}", "what else it takes" },
    },
  },
  {
    command = "ops --formats",
    keys = {
      { "[].{name, description}", "of each format" },
      { "[].{bits, block, scale_bytes}", "of a value; values that are stored together; bytes besides them" },
      { "[].computed_as", "the format that kernels compute with" },
      { "[].read", "how ops read a parameter of it: `as stored`, `dequantised`, `by updates`" },
      { "[].trains", "whether a parameter that is trained may be stored so" },
    },
  },
  {
    command = "ops --optimizers",
    keys = {
      { "[].{name, description, otherwise}", "`otherwise`: the optimizer of parameters that this one does not take" },
      { "[].states[].{name, when}",
        "what it keeps of each parameter; `when`: only where that hyper-parameter is not 0" },
      { "[].hypers[].{name, default, allowed, description}",
        "hyper-parameters; `allowed`: what they may be, in words" },
    },
  },
  {
    command = "ops --schedules",
    keys = {
      { "[].{name, description, ends}", "`ends`: it is laid out over its steps" },
      { "[].parameters[].{name, default, list, words}", "numbers, lists, or one of a few words" },
    },
  },
  {
    command = "ops --counters",
    keys = {
      { "[].{name, unit, description}", "of each; `unit`: `count`, `bytes`, `seconds`, or `tier` (1: the host)" },
    },
  },
  {
    command = "ops --amp",
    keys = {
      { "[].{name, description}", "of each class" },
      { "[].by_rule", "whether a rule may give it" },
      { "[].ops", "that have it" },
    },
  },
}
