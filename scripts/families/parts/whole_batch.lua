-- Losses over pairs of rows, for recipes: of all micro-batches of a step together, by the op `effective`, or of each.
local whole_batch = {
  OPTION = { "effective", true, "the loss is over all pairs of a step's micro-batches, each of which is computed " ..
    "twice; false: of each micro-batch alone" },
}

-- A value of one micro-batch as one of the effective batch, where the options ask for it.
function whole_batch.of(o, graph, value)
  return (graph:op("effective", value, { micro_steps = o.effective and o.micro_steps or 1 }))
end

-- Why one batch of several micro-batches' samples is not compared with these (`cairn verify`).
function whole_batch.crosses(o)
  return o.effective and "their loss has no gradients before the last of them"
    or "the loss of each is over its own pairs"
end

return whole_batch
