-- Samples of text that the model makes every few steps of its training, by programs of their own in the run's store:
-- the text that `cairn generate` makes with the parameters of that step, and --seed: the run's and the step.
local fail = require "cli.base.fail"
local slice = require "cli.base.slice"
local texts = require "cli.model.texts"
local unicode = require "cli.base.unicode"

local samples = {}

local TOKENS = 128

-- Ends the command if the options ask for samples that the run cannot make.
function samples.check(spec)
  local options, recipe = spec.options, spec.recipe
  for _, name in ipairs { "sample_prompt", "sample_temperature" } do
    if options[name] and not options.sample_every then
      fail.usage(("--%s goes with --sample-every N"):format((name:gsub("_", "-"))))
    end
  end
  if not options.sample_every then return end
  if not recipe.generator then
    fail.usage(("--sample-every: %s generates no text: it has no `generator`"):format(recipe.path))
  end
  if recipe.begins then
    fail.usage("--sample-every goes with models that go on with a prompt; this one answers a source: cairn generate")
  end
  if recipe.no_texts then fail.usage(("--sample-every: %s writes no text: %s"):format(recipe.name, recipe.no_texts)) end
  if spec.o.data == "random" then fail.usage("--sample-every goes with data=FILE: random tokens are no text") end
end

-- Rows {name, kind, o, graph} of the programs for the samples of a run whose data are open.
function samples.rows(run)
  local options, tokenizer = run.spec.options, run.data.tokenizer and run.data.tokenizer.opened
  if not tokenizer then fail.usage("--sample-every: the recipe's dataset has no tokenizer") end
  local prompt = texts.encoded(tokenizer, options.sample_prompt or "", "--sample-prompt")
  local rows = texts.programs(run.recipe, run.o, { samples = 1, longest = #prompt, rows = #prompt + TOKENS - 1,
    dtype = options.amp == "bf16" and "bf16" or nil })
  run.sampled = { tokenizer = tokenizer, prompt = prompt, cached = rows ~= nil, names = {} }
  rows = rows or { { name = "generation" } }
  for i, row in ipairs(rows) do row.kind, row.o, run.sampled.names[i] = "generation", run.o, row.name end
  return rows
end

-- Counts the runs of programs (what decodes, and what reads prompts) that made so many tokens after a prompt.
local function count(decode, prefill, read, made)
  if prefill and made > 0 then
    prefill.micro_batches, prefill.tokens = prefill.micro_batches + 1, prefill.tokens + read
    made = made - 1
  end
  decode.micro_batches, decode.tokens = decode.micro_batches + made, decode.tokens + made
end

-- A function(step, stop) that makes one, records it, and shows it on stderr unless the run is quiet; false: it was
-- stopped, and nothing is recorded. The same step of the same run makes the same text.
function samples.maker(run, state, options)
  return function(step, stop)
    local sampled = run.sampled
    local decode, prefill = run.programs[sampled.names[1]], run.programs[sampled.names[2]]
    if not run.writer then
      local sessions = { decode.session, prefill and prefill.session }
      run.writer = texts.writer(sessions, sampled.cached, sampled.tokenizer)
    end
    local tokens, stopped = slice(sampled.prompt, 1), false
    fail.check("--sample-prompt", run.writer:begin(0, sampled.prompt, { seed = run.spec.seed + step,
      temperature = options.sample_temperature or texts.TEMPERATURE, top_k = texts.TOP }))
    for _ = 1, TOKENS do
      local made, err = run.writer:next()
      if not made and err.status == "NON_FINITE" then break end  -- a model gone wrong says so by its loss
      tokens[#tokens + 1] = fail.check("sample", made, err)[1]
      stopped = stop()
      if stopped then break end
    end
    count(decode, prefill, #sampled.prompt, #tokens - #sampled.prompt)
    if stopped then return false end
    local text = run.recipe.guard(texts.decoded, sampled.tokenizer, tokens)  -- it may be the recipe's
    state.journal:sample(step, text)
    if not options.quiet then
      -- On one line; samples.jsonl has the text itself.
      io.stderr:write(("sample after step %d: %s\n"):format(step, unicode.shown((text:gsub("\r?\n", "⏎")))))
    end
    return true
  end
end

return samples
