-- Commands that plan and train.
local cairn = require "cairn"

local TIERS = "{device, host, disk}"

local PLAN = {
  { "plan.keep_bytes", "of values that backward needs: kept on the device" },
  { "plan.recompute_bytes", "recomputed in backward" },
  { "plan.{offload_host_bytes, offload_disk_bytes}", "copied to that tier and back" },
  { "plan.predicted_step_seconds",
    "of a complete step: all its micro-batches, what the host does around them, the update" },
  { "plan.bound_step_seconds", "no plan under this budget can be faster, under the same costs" },
  { "plan.gap", "`predicted_step_seconds / bound_step_seconds - 1`" },
  { "plan.solve_seconds", "that planning took" },
  { "plan.keep_all_step_seconds",
    "predicted if every activation were kept, whatever that takes; states are where this plan has them" },
  { "plan.{optimizer_host_bytes, optimizer_disk_bytes}",
    "of optimizer state and master weights that live in that tier" },
  { "plan.{packed_bytes, unpacked_bytes, deferred_updates, host_updates, host_adds}", "as `plan.counters`" },
  { "plan.rates",
    "what predicted seconds rest on: `measured` (now), `cached`, `file`, `model`, `profile` or `device-model`" },
  { "plan.update_at",
    "`host` where what lives on the host is updated there, by a CPU in place, gradients included; else `device`" },
}
local COUNTERS = {}
for i, row in ipairs(cairn.plan_counters()) do COUNTERS[i] = { "plan.counters." .. row.name, row.description } end

local MEMORY = {
  { "planned_peak_bytes." .. TIERS, "the plan's highest byte of each tier" },
  { "activation_peak_bytes", "most bytes of activations at once; without what persists, as inputs, which " ..
    "`memory_bytes.activations` counts" },
  { "memory_bytes.{parameters, gradients, optimizer, activations, workspace}", "on the device, at the peak" },
  { "tier_bytes.{host, disk}.{parameters, gradients, optimizer, activations}",
    "in that tier, at its peak: together its `planned_peak_bytes`" },
}

local CHOICE = {
  { "batch", "samples of a micro-batch; null where the recipe does not say" },
  { "accumulate", "micro-batches of a step" },
}

-- Lists one after the other, each key behind a prefix; a row is a list itself.
local function joined(prefix, ...)
  local rows = {}
  for _, list in ipairs { ... } do
    if type(list[1]) ~= "table" then list = { list } end
    for _, row in ipairs(list) do rows[#rows + 1] = { prefix .. row[1], row[2] } end
  end
  return rows
end

local OF_PLAN = joined("", { "budget_bytes", "of the device; 0: no limit" }, PLAN, COUNTERS, MEMORY, {
  { "live_peak_bytes", "most bytes alive at once: the peak less the gaps of the layout" },
  { "persistent_bytes", "parameters, gradients, optimizer state, packed weights and inputs on the device" },
  { "values", "how many the plan has" },
  { "ops", "of forward and backward; `in_place_ops` of them write over an input" },
  { "in_place_ops", "count" },
  { "row_tiles", "tiles of rows, the most of any ops that run on one tile after the other; 1: none do" },
  { "measured_ops", "whose seconds come from the profile" },
  { "instructions", "of the program that the plan becomes" },
  { "regions", "count" },
})

local CANDIDATES = joined("candidates[].", CHOICE, {
  { "fits", "whether there is a plan under the budget" },
  { "samples_per_second", "predicted" },
  { "predicted_step_seconds", "of a step" },
  { "slower", "than the choice, as a share" },
  { "planned_peak_bytes." .. TIERS, "of its plan" },
}, PLAN, {
  { "plan.counters.NAME", "of each of `cairn ops --counters`" },
  { "measured_ops", "whose seconds come from the profile" },
  { "ops", "of its plan" },
  { "smallest_budget_bytes", "instead of all these, where it does not fit: the budget that would do" },
})

return {
  {
    command = "train",
    keys = joined("", {
      { "steps", "done, those of a resumed run included" },
      { "loss", "of each step, the mean over its effective batch" },
      { "step_seconds_median", "of this run's steps but the first" },
      { "tokens_per_second", "without the first step; of the recipe's own count of tokens: of instruction data all " ..
        "that are no padding, those of prompts included" },
      { "samples_per_second", "null where the recipe does not say how many a micro-batch has" },
      { "images_per_second", "of recipes over pictures: the same" },
      { "total_seconds", "of training, evaluation and saving" },
      { "epochs", "null where data have no end" },
      { "peak_bytes." .. TIERS, "measured by the ledger: equal to `planned_peak_bytes`" },
    }, MEMORY, {
      { "stall_seconds", "compute waited for copies, mean of a step" },
      { "data_seconds", "training waited for its data, mean of a step" },
      { "process_peak_rss_bytes", "of the process, as the system counts: code and libraries included" },
      { "process_memory.{peak_rss_bytes, plan_bytes, library_bytes, interpreter_bytes, code_bytes, data_bytes, " ..
        "other_bytes}", "what that is made of: the plan, the library's heap, LuaJIT's, code, mapped files of data; " ..
        "the rest was given back since, or is stacks and room that the heap keeps" },
      { "copies.{host, disk}.{out_bytes, in_bytes, out_seconds, in_seconds}",
        "from the device and back, mean of a step" },
      { "submit_seconds_median", "that the host takes to hand a micro-batch to the device" },
      { "driver_bytes.{before, now}", "of a GPU, taken by all programs, as its driver counts; 0 on processors" },
      { "parameter_digest", "XXH3-128 over all parameters in the order of the graph" },
      { "parameter_count", "numbers in all parameters" },
      { "trainable_parameters", "numbers in those that are trained" },
      { "base_digest", "XXH3-128 over the parameters that are not, as they are stored; absent where all are" },
      { "skipped_steps", "whose gradients were not finite, or of whose targets none counted" },
      { "loss_scale", "of the last step; 1 but with `--amp fp16`" },
    }, PLAN, COUNTERS, {
      { "ended", "`done`; `early` by `--early-stop`, `time` by `--max-time`, `recipe` by its `on_step`, " ..
        "`stopped` by a signal; `nonfinite`, `metric`, `empty`" },
      { "first_step", "the steps that were done before" },
      { "step_seconds", "of each step of this run" },
      { "checkpoint", "the newest; null without `--out`" },
    }, CHOICE, {
      { "optimizer", "its name" },
      { "metrics.NAME", "of each step: what the recipe measures in training" },
      { "evaluation[].{step, loss, seconds}", "only where there is something to evaluate with" },
      { "evaluation[].NAME", "the recipe's metrics" },
      { "evaluation_seconds", "all evaluations" },
      { "early_stopped", "whether `--early-stop` ended the run" },
      { "best.{step, metric, value, checkpoint}", "the best evaluation; `checkpoint` null unless it is kept" },
      { "tokens_supervised_share", "of instruction data: of an epoch's tokens those that are learned" },
      { "tokens_padding_share", "of instruction data: of the places in an epoch's windows those without a token" },
      { "skipped_pictures", "with `bad=skip`: that could not be read" },
      { "shrunk[].{step, batch, accumulate, why}", "with `--on-oom shrink`: what the run came to, and when" },
      { "dry_run", "true, with `--dry-run`" },
      { "programs_not_run", "names; `planned_peak_bytes` leaves them out, which raised no peak" },
      { "programs[].{name, length, micro_batches, tokens}",
        "of a run with several: what each has done; `length` may be null" },
      { "resumed.{checkpoint, step}", "of a resumed run: what it goes on from" },
      { "resumed.differences[].{what, was, now}", "what is otherwise than in the run so far" },
      { "resumed.damaged[].{checkpoint, why}", "newer checkpoints that were passed over" },
      { "resumed.set_aside[].{from, to}", "checkpoints of later steps, under their new names" },
    }, CANDIDATES),
  },
  {
    command = "plan",
    about = "With `--sweep` an array over budgets, from keeping everything down to the smallest: below.",
    keys = joined("", OF_PLAN, CHOICE, {
      { "samples_per_second", "predicted; null where the recipe has no `batch`" },
      { "parameter_count", "numbers in all parameters" },
      { "trainable_parameters", "numbers in those that are trained" },
    }, CANDIDATES, {
      { "amp.mode", "where rules change the precision of ops: `--amp`" },
      { "amp.rules[].{op, region, class, ops}",
        "each rule, and how many ops it changes; `op` or `region` may be null" },
      { "programs[].{name, length, batch, activation_peak_bytes, predicted_seconds, predicted_step_seconds}",
        "of a run with several, on one store" },
      { "programs[].planned_peak_bytes." .. TIERS, "each program's own" },
      { "programs[].memory_bytes.{parameters, gradients, optimizer, activations, workspace}", "each program's own" },
    }),
  },
  {
    command = "plan --sweep",
    keys = joined("[].", { "budget_share", "of what keeping everything takes" }, OF_PLAN, {
      { "by_hand.{keep_all, per_layer, sqrt_n}.{budget_bytes, predicted_step_seconds}",
        "checkpointing by rules: what they need, and how long a step takes" },
    }),
  },
  {
    command = "plan --fit",
    about = "A row for each set of options that make a plan need less of the device.",
    keys = joined("", {
      { "device", "what is planned for, in words" },
      { "device_bytes", "its memory; 0: not known" },
      { "budget_bytes", "what rows are to fit: `--budget`, or the device's memory; 0: no limit" },
      { "notes", "what was not tried, and why" },
    }, joined("rows[].", {
      { "levers", "the options, as they are typed; without any: recomputing alone" },
      { "smallest_budget_bytes", "the least budget that a plan with these options has; null: not looked for, as the " ..
        "model is large" },
      { "at_least_bytes", "what that is not below, as weights, states and gradients take so much; null where it is " ..
        "known" },
      { "at_most_bytes", "what that is not above, the bytes of a plan that was found; null where it is known" },
      { "predicted_step_seconds", "of a step under that budget; null where the device cannot have so much, and of " ..
        "large models but with everything kept, under `at_most_bytes`" },
      { "peak_at", "the op that runs at that plan's peak; null: what persists is all" },
      { "fits", "whether that budget is within `budget_bytes`; null: not known" },
      { "budget_step_seconds", "predicted of a step under `budget_bytes`; null where it does not fit" },
      { "memory_bytes.{parameters, gradients, optimizer, activations, workspace}",
        "on the device under the smallest budget, at the peak; of large models under `budget_bytes`" },
      { "packed_bytes", "of packed weights, part of its `parameters`" },
      { "tier_bytes.{host, disk}.{parameters, gradients, optimizer, activations}", "in that tier, under that budget" },
      { "planned_peak_bytes." .. TIERS, "under that budget" },
      { "needs", "what else the run must be; null: nothing" },
      { "why", "what keeps it from being planned at its smallest budget; null: nothing" },
    })),
  },
  {
    command = "verify",
    keys = {
      { "ok", "whether all of it holds" },
      { "problems", "what does not, in words" },
      { "notes", "what could not be compared, and why" },
      { "steps", "of each run" },
      { "gradients_apart",
        "the largest difference of a tensor's gradient to that of one large batch, as a share; null: not compared" },
      { "gradients_apart_after_skip", "the same after a step that was skipped" },
      { "gradients_apart_frozen", "the same with some parameters frozen" },
      { "link_bytes_per_second", "of the slow link" },
      { "bit_equal_runs", "count" },
      { "peaks_as_planned", "runs whose measured peaks are the planned ones" },
      { "runs[].{name, group, accumulate, ok}", "all runs of a group must end in the same bits" },
      { "runs[].{equal, largest_difference}", "to the first of its group" },
      { "runs[].{parameter_digest, loss, gradient_norm}", "how it ended; `loss` of each step" },
      { "runs[].{skipped_steps, frozen_parameters}", "how many" },
      { "runs[].peak_is_planned", "on every tier" },
      { "runs[].{peak_bytes, planned_peak_bytes}." .. TIERS, "measured and planned" },
      { "runs[].{budget_bytes, keep_bytes, recompute_bytes, offload_host_bytes, offload_disk_bytes}", "of its plan" },
      { "runs[].seconds", "it took" },
      { "seconds", "all of it took" },
    },
  },
  {
    command = "profile",
    keys = {
      { "profile", "the file; with `--predicted` there is none" },
      { "trace", "the file" },
      { "steps", "that were measured" },
      { "step_seconds_median", "of these" },
      { "step_seconds_spread", "their interquartile range" },
      { "predicted_step_seconds", "by a plan with this profile" },
      { "ops", "in the profile" },
      { "links[].{tier, stated_bytes_per_second}", "`host` or `disk`; its throttle, 0: none" },
      { "links[].{latency_seconds, out_bytes_per_second, in_bytes_per_second, both_ways_factor}", "measured" },
      { "links[].{busy_factor, busy_rate_factor}",
        "of its speed, what a kernel keeps during a copy, and a copy while kernels run; left out: all" },
      { "events", "with `--predicted`: spans in the trace" },
      { "predicted_seconds", "with `--predicted`: of a micro-batch" },
    },
  },
}
