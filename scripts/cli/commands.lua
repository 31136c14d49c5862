-- What the command knows to do: rows { name, operands, words for help, operand = }, where `operand` says what the first
-- operand is: a recipe, a file, a directory, or an op. A test compares them with the folder commands.
local posix = require "cli.base.posix"

local function recipes()
  local root, names = debug.getinfo(1, "S").source:match("^@(.*)/cli/commands%.lua$"), {}
  for _, file in ipairs(posix.list(root .. "/recipes") or {}) do names[#names + 1] = file:match("^(.*)%.lua$") end
  return table.concat(names, ", ")
end

return {
  { "train", "RECIPE [key=value ...]", "train; RECIPE is a Lua file or a name: " .. recipes(), operand = "recipe" },
  { "plan", "RECIPE [key=value ...]", "what the run would take; --sweep, --html FILE, --problem FILE",
    operand = "recipe" },
  { "verify", "RECIPE [key=value ...]", "the same steps kept, recomputed, offloaded ...: compares bits",
    operand = "recipe" },
  { "profile", "RECIPE [key=value ...]", "measures costs to plan with, and a trace for Perfetto", operand = "recipe" },
  { "evaluate", "RUN [key=value ...]", "loss and metrics of a trained model; the run is not touched",
    operand = "directory" },
  { "eval", "RUN|DIR [key=value ...]", "the same as evaluate", operand = "directory" },
  { "logits", "DIR --tokens 1,2,3", "what a model says of tokens that are given by their numbers",
    operand = "directory" },
  { "predict", "RUN", "rows in, answers out: JSON lines by names", operand = "directory" },
  { "inspect", "FILE", "any cairn or safetensors file, or a directory of them", operand = "file" },
  { "generate", "DIR --prompt TEXT", "text from a trained model", operand = "directory" },
  { "chat", "DIR|FILE.gguf|RUN", "a conversation with a model, by its chat template", operand = "directory" },
  { "tokenize", "DIR [FILE]", "tokens of each line, by a model's tokenizer; --decode",
    operand = "directory" },
  { "template", "DIR|FILE.gguf FILE", "conversations as a model's template writes them: text, tokens, mask",
    operand = "directory" },
  { "export", "RUN OUT", "weights by Hugging Face names, or a model's directory",
    operand = "directory" },
  { "convert", "DIR OUT.gguf", "a model's directory as a GGUF file, in another type; --format q8_0",
    operand = "directory" },
  { "devices", "", "what this machine has" },
  { "ops", "[NAME ...]", "what graphs are built of: operands, attributes, formulas", operand = "op" },
  { "models", "[FAMILY ...]", "families whose directories may stand where a recipe does" },
  { "lua", "FILE [ARG ...]", "runs a Lua program with the binding at hand", operand = "file" },
}
