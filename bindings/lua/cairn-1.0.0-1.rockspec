rockspec_format = "3.0"
package = "cairn"
version = "1.0.0-1"
-- `luarocks make` in this folder installs what lies here; there is nothing to fetch.
source = { url = "." }
description = {
  summary = "Train neural networks inside a memory budget",
  detailed = "The LuaJIT binding of libcairn: graphs, plans, sessions, steppers, and modules and optimizers by the names of " ..
    "Torch7. libcairn 1.x must be installed; $CAIRN_LIBRARY names one that the loader does not find.",
  license = "Apache-2.0",
  labels = { "machine-learning", "luajit", "ffi" },
}
-- The interface of Lua 5.1, by LuaJIT: the binding is written on its module `ffi`.
dependencies = { "lua >= 5.1, < 5.2" }
external_dependencies = { CAIRN = { library = "cairn" } }
build = {
  type = "builtin",
  modules = {
    ["cairn"] = "cairn.lua",
    ["cairn.amp"] = "cairn/amp.lua",
    ["cairn.cdef"] = "cairn/cdef.lua",
    ["cairn.core"] = "cairn/core.lua",
    ["cairn.costs"] = "cairn/costs.lua",
    ["cairn.data"] = "cairn/data.lua",
    ["cairn.formats"] = "cairn/formats.lua",
    ["cairn.generator"] = "cairn/generator.lua",
    ["cairn.graph"] = "cairn/graph.lua",
    ["cairn.hypers"] = "cairn/hypers.lua",
    ["cairn.instance"] = "cairn/instance.lua",
    ["cairn.model"] = "cairn/model.lua",
    ["cairn.nearest"] = "cairn/nearest.lua",
    ["cairn.nn"] = "cairn/nn.lua",
    ["cairn.nn.attention"] = "cairn/nn/attention.lua",
    ["cairn.nn.branches"] = "cairn/nn/branches.lua",
    ["cairn.nn.containers"] = "cairn/nn/containers.lua",
    ["cairn.nn.contrastive"] = "cairn/nn/contrastive.lua",
    ["cairn.nn.criterions"] = "cairn/nn/criterions.lua",
    ["cairn.nn.init"] = "cairn/nn/init.lua",
    ["cairn.nn.layers"] = "cairn/nn/layers.lua",
    ["cairn.nn.module"] = "cairn/nn/module.lua",
    ["cairn.nn.norms"] = "cairn/nn/norms.lua",
    ["cairn.nn.print"] = "cairn/nn/print.lua",
    ["cairn.nn.recurrent"] = "cairn/nn/recurrent.lua",
    ["cairn.nn.reference"] = "cairn/nn/reference.lua",
    ["cairn.nn.segments"] = "cairn/nn/segments.lua",
    ["cairn.nn.spatial"] = "cairn/nn/spatial.lua",
    ["cairn.nn.torch"] = "cairn/nn/torch.lua",
    ["cairn.nn.trainer"] = "cairn/nn/trainer.lua",
    ["cairn.numbers"] = "cairn/numbers.lua",
    ["cairn.optim"] = "cairn/optim.lua",
    ["cairn.pictures"] = "cairn/pictures.lua",
    ["cairn.plan"] = "cairn/plan.lua",
    ["cairn.random"] = "cairn/random.lua",
    ["cairn.regions"] = "cairn/regions.lua",
    ["cairn.schedules"] = "cairn/schedules.lua",
    ["cairn.session"] = "cairn/session.lua",
    ["cairn.stepper"] = "cairn/stepper.lua",
    ["cairn.template"] = "cairn/template.lua",
  },
  copy_directories = {},
}
