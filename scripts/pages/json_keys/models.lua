-- Commands for models, texts and files.
local TIERS = "{device, host, disk}"

return {
  {
    command = "generate",
    keys = {
      { "text", "what follows the prompt; bytes that are no UTF-8 are U+FFFD" },
      { "tokens", "the same, exactly; of an answer, the token that begins it, too" },
      { "prompt_tokens", "the prompt's" },
      { "prefill_seconds", "to the first token" },
      { "decode_tokens_per_second", "after it; null where there is one" },
      { "finish_reason", "length, end (a token that ends texts) or stop (--stop)" },
      { "cache_bytes", "of keys and values; 0: every token sees the window again" },
      { "{peak_bytes, planned_peak_bytes}." .. TIERS, "measured, and as planned: the same" },
      { "texts[].{text, tokens, prompt_tokens, finish_reason}", "of several prompts, each; the first is above, too" },
    },
  },
  {
    command = "logits",
    keys = {
      { "logits", "of the last token; with `--positions all` an array for each token" },
    },
  },
  {
    command = "models",
    keys = {
      { "models[].model_type", "as config.json has it" },
      { "models[].models", "what it is known as" },
      { "models[].recipe", "the recipe that a directory of it is" },
      { "models[].keys", "of config.json, that are read" },
    },
  },
  {
    command = "evaluate",
    about = "Besides these, a key for each metric of the recipe. `cairn predict` prints JSON lines whose keys are " ..
      "those of the model's answers.",
    keys = {
      { "checkpoint", "what was evaluated: its directory, or the safetensors file" },
      { "step", "of the checkpoint; not there for a safetensors file" },
      { "loss", "the sum over all data, divided once by the sum of weights" },
      { "{accuracy, perplexity}", "of `gpt2`" },
      { "tokens", "of the data, where a model has rows of them" },
      { "samples", "of the data, where these say how many they are" },
      { "seconds", "that it took" },
      { "labels.NAME", "of `classify`: how many texts have that label" },
      { "{peak_bytes, planned_peak_bytes}." .. TIERS, "measured, and as planned: the same" },
    },
  },
  {
    command = "export",
    keys = {
      { "{file, directory}", "what was written, the second with `--to hf` and `--to adapter`" },
      { "checkpoint", "what was read" },
      { "tensors", "how many" },
      { "merged", "how adapters were added: `--merge`" },
      { "{merge_difference_largest, merge_difference_mean}", "between the two ways of merging, where a format has " ..
        "rounded the base: of all weights that it rounded" },
    },
  },
  {
    command = "convert",
    keys = {
      { "file", "what was written" },
      { "format", "that its matrices are stored in" },
      { "tensors", "how many" },
    },
  },
  {
    command = "chat",
    about = "An object for each turn, one a line.",
    keys = {
      { "text", "of the answer; bytes that are no UTF-8 are U+FFFD" },
      { "tokens", "the same, exactly, with the token that ends the turn" },
      { "prompt_tokens", "of the conversation up to the answer" },
      { "read_tokens", "of these, those that the caches did not hold yet" },
      { "finish_reason", "end, length (`--length`) or context (the window is full)" },
      { "seconds", "that the turn took" },
    },
  },
  {
    command = "tokenize",
    about = "A JSON array for each line; with `--offsets` an object, with `--decode` a string.",
    keys = {
      { "tokens", "numbers" },
      { "offsets[]", "for each token the bytes of the line that it stands for: `[begin, end]`" },
    },
  },
  {
    command = "template",
    about = "An object for each row, one a line. Where the data are several files, it begins with the row's `file`.",
    keys = {
      { "line", "of the row" },
      { "form", "what the row is, by its keys" },
      { "text", "that the template makes of it" },
      { "ids", "the tokens of that text" },
      { "mask", "of each token: 1 if it is learned, 0 if not" },
    },
  },
  {
    command = "inspect",
    about = "`kind` says what the file is; the other keys are those of that kind, here of a checkpoint. They follow " ..
      "what is in the file.",
    keys = {
      { "kind", "checkpoint, model, plan, tokens, tokenizer, safetensors ..." },
      { "parameter_count", "numbers in all parameters, of a checkpoint, a model or safetensors" },
      { "metadata.NAME", "the host's own words; of `cairn train`: the recipe and its options" },
      { "files.NAME.{bytes, xxh3_128}", "that lie in the checkpoint" },
      { "base.digest", "of the frozen parameters that the checkpoint does not hold; absent where it holds all" },
      { "base.tensors.NAME.{dtype, shape, xxh3_128}", "of each of these" },
      { "model.{digest, ops, values, parameter_count}", "of the graph" },
      { "model.inputs.NAME.{dtype, shape, bytes}", "of each input" },
      { "model.parameters.NAME.{dtype, shape, bytes}", "of each parameter" },
      { "model.regions[].{name, policy}", "of each region" },
      { "state.NAME", "of the stepper: steps, rate, loss scale, groups and their hyper-parameters" },
      { "tensors.NAME.{dtype, shape, offset, xxh3_128}", "parameters and optimizer states, as stored; of " ..
        "safetensors {dtype, shape, bytes, offset}, and of a model's directory the file" },
      { "tensors_bytes", "of all of them" },
    },
  },
}
