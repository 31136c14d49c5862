-- Samples of text that the model makes every few steps of its training, by a program of its own in the run's store.
local fail = require "cli.base.fail"
local sampling = require "cli.train.sampling"
local uniform = require "cairn.random"
local unicode = require "cli.base.unicode"

local samples = {}

local TOKENS = 128

-- Ends the command if the options ask for samples that the run cannot make.
function samples.check(spec)
  local options, recipe = spec.options, spec.recipe
  if options.sample_prompt and not options.sample_every then
    fail.usage("--sample-prompt goes with --sample-every N")
  end
  if not options.sample_every then return end
  if not recipe.generator then
    fail.usage(("--sample-every: %s generates no text: it has no `generator`"):format(recipe.path))
  end
  if spec.o.data == "random" then fail.usage("--sample-every goes with data=FILE: random tokens are no text") end
end

-- A function(step, stop) that makes one, records it, and shows it on stderr unless the run is quiet; false: it was
-- stopped, and nothing is recorded. The same step of the same run makes the same text.
function samples.maker(run, state, options)
  local tokenizer = run.data.tokenizer and run.data.tokenizer.opened
  if not tokenizer then fail.usage("--sample-every: the recipe's dataset has no tokenizer") end
  local program = run.programs.generation
  local prompt = sampling.prompt(tokenizer, options.sample_prompt or "", "--sample-prompt")
  return function(step, stop)
    local tokens, stopped = {}, false
    for i, token in ipairs(prompt) do tokens[i] = token end
    sampling.extend(program.session, tokens, TOKENS, {
      window = program.plan.graph:info("tokens").shape[2], vocabulary = tokenizer:vocabulary(),
      random = uniform(run.spec.seed + step), what = "--sample-prompt",
      added = function()
        stopped = stop()
        return not stopped
      end,
      not_finite = function() end })  -- a model gone wrong says so by its loss
    local made = #tokens - #prompt
    program.micro_batches, program.tokens = program.micro_batches + made, program.tokens + made
    if stopped then return false end
    local text = fail.check("sample", run.recipe.guard(tokenizer.decode, tokenizer, tokens))  -- it may be the recipe's
    state.journal:sample(step, text)
    if not options.quiet then
      -- On one line; samples.jsonl has the text itself.
      io.stderr:write(("sample after step %d: %s\n"):format(step, unicode.shown((text:gsub("\r?\n", "⏎")))))
    end
    return true
  end
end

return samples
