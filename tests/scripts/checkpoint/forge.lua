-- cairn lua forge.lua FROM TO CHANGES: saves the checkpoint FROM again as TO, as a stranger could. CHANGES is a JSON
-- file: metadata (all of it) and files (paths of what lies beside the tensors).
local cairn = require "cairn"
local decode = require "cli.base.json_decode"

local from, to, path = ...
local file = assert(io.open(path))
local changes = decode(file:read("*a"))
file:close()
local checkpoint = assert(cairn.checkpoint(from))
local plan = assert(cairn.plan(checkpoint:graph(), assert(cairn.device("cpu", { threads = 1 }))))
local stepper = assert(cairn.stepper(assert(cairn.session(plan)), {}))
assert(stepper:restore(checkpoint))
assert(stepper:save(to, changes.metadata, changes.files))
