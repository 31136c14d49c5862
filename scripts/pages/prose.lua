-- What manual pages say besides the tables. Examples are { command line, what it does }; make.lua checks that their
-- options are there; `name` is what a page's head says where the words of `cairn --help` would not do.
local prose = {}

prose.cairn = {
  about = {
    "cairn trains neural networks inside a memory budget. The budget is a number of bytes. cairn decides for every " ..
      "activation whether to keep it, recompute it, or offload it to host memory or disk. It says before the first " ..
      "step exactly how many bytes the run will take, and takes exactly those. Plans change memory and time, never " ..
      "numbers.",
    "A recipe describes what is trained: it is a Lua file, or the name of one that comes with cairn. Its options " ..
      "are given as key=value words; cairn-recipes(7) lists them.",
  },
  examples = {
    { "cairn train mlp --steps 100 --out run", "trains a small network and keeps its checkpoints in run" },
    { "cairn plan gpt2 data=random --sweep", "seconds and bytes for a range of budgets; nothing runs" },
    { "cairn train gpt2 data=book.txt --budget 60% --out run",
      "trains in 60 % of the memory that keeping everything takes" },
    { "cairn generate run --prompt Once", "text from what was trained" },
  },
}

prose.train = {
  name = "train what a recipe describes",
  about = {
    "Trains what the recipe describes and prints what the run took. Progress goes to standard error, data to " ..
      "standard output. With --out, checkpoints and records of the run are kept in a directory; a run that is " ..
      "interrupted by SIGINT or SIGTERM saves first, and --resume goes on to the same bits. A size is a number of " ..
      "bytes, or has a unit: KiB, MiB, GiB, TiB.",
  },
  examples = {
    { "cairn train gpt2 data=book.txt layers=6 width=384 --budget 600MiB --accumulate 4 --amp bf16 --out run",
      "a small GPT-2 in bf16, in 600 MiB, four micro-batches a step" },
    { "cairn train --resume run --steps 2000", "goes on with it, up to step 2000" },
    { "cairn train --config run/run.json --dry-run", "plans the same run again, tries one step, writes nothing" },
  },
}
prose.plan = {
  name = "what a run would take, to the byte",
  about = {
    "Plans the run and prints what it will take, to the byte, and how far the plan is from the best possible one. " ..
      "Nothing is trained. With --problem, plans a problem in its JSON form instead, which any program may have " ..
      "written.",
  },
  examples = {
    { "cairn plan gpt2 layers=12 data=random --budget 40% --html plan.html", "one page about the plan, with pictures" },
    { "cairn plan gpt2 batch=auto global_batch=64 --budget 400MiB", "chooses the size of micro-batches, too" },
    { "cairn plan --problem problem.json --budget 30%", "plans somebody else's problem" },
  },
}
prose.verify = {
  about = {
    "Trains the same few steps with everything kept, recomputed, offloaded, accumulated, saved and resumed, under " ..
      "several budgets, and compares the parameters bit by bit. Exit code 1: parameters differ that should not.",
  },
  examples = { { "cairn verify gpt2 data=random layers=2 width=64 --steps 3", "" } },
}
prose.profile = {
  about = {
    "Measures how long each op and each link takes on this machine, writes that as a profile to plan with, and a " ..
      "trace of the run's compute and copy lanes that https://ui.perfetto.dev shows.",
  },
  examples = {
    { "cairn profile gpt2 layers=12 --profile-out here.json", "" },
    { "cairn plan gpt2 layers=12 --profile here.json --budget 50%", "plans with what was measured" },
  },
}
prose.inspect = {
  about = { "Prints what a file of cairn's (checkpoint, model, plan, tokens, tokenizer) or a safetensors file " ..
    "holds. For a directory, that is its newest checkpoint, or the model in it: model.safetensors, or the " ..
    "files that model.safetensors.index.json names." },
  examples = { { "cairn inspect run --json", "" } },
}
prose.tokenize = {
  about = {
    "Prints the tokens of each line of a file, or of what comes in, as a JSON array of numbers: by the tokenizer of " ..
      "a published model, whose directory is given, or one of the files tokenizer.json, tekken.json, " ..
      "tokenizer.model, or vocab.json next to merges.txt. They are the tokens that the libraries give which these " ..
      "files are of. What is no UTF-8 is read as U+FFFD.",
    "--decode turns such lines into text again, without special tokens; with --json as JSON strings, in which a " ..
      "text may have line ends.",
  },
  examples = {
    { "cairn tokenize DIR book.txt --json", "" },
    { "cairn tokenize DIR book.txt | cairn tokenize DIR --decode", "the same text, if the tokenizer loses nothing" },
  },
}
prose.template = {
  name = "conversations as a chat template writes them",
  about = {
    "Prints what a model is trained on with rows of instruction data: the text that its chat template writes of " ..
      "each row, the tokens, and which of them are learned. It reads the template and the tokenizer of a model's " ..
      "directory or a GGUF file, and rows in the forms that data= of `cairn train` takes.",
    "For people, a line with + is learned. With --json, an object for each row.",
  },
  examples = {
    { "cairn template DIR chat.jsonl --limit 3", "" },
    { "cairn template DIR chat.jsonl --json | jq .mask", "" },
  },
}
prose.chat = {
  about = { "Holds a conversation with a model by its chat template, on a terminal or a pipe. The model is that of " ..
    "a directory, of a GGUF file, or of a run. The caches hold earlier turns: a turn reads its new tokens alone." },
  examples = {
    { "cairn chat SmolLM2-135M-Instruct", "lines are turns; /reset begins again, /exit ends" },
    { "cairn chat model.gguf --adapter run --prompt Hello", "one answer, by an adapter that was trained on the file" },
  },
}
prose.convert = {
  name = "a model as a GGUF file",
  about = { "Writes a model as a GGUF file, which llama.cpp runs and cairn trains: keys, tensors, tokenizer and " ..
    "chat templates. Matrices are written in the format named; vectors, norms, routers and positions are f32." },
  examples = { { "cairn convert SmolLM2-135M model.gguf --format q8_0", "" },
               { "cairn convert model.gguf small.gguf --format q4_0", "from blocks to smaller ones" } },
}
prose.generate = {
  about = { "Prints text that a trained model continues a prompt with, as its tokens come. The model is that of a " ..
    "run, or of a directory with config.json and safetensors files. One with an encoder and a decoder, as T5, " ..
    "answers the prompt." },
  examples = {
    { "cairn generate run --prompt Once --max-tokens 100 --temperature 0.7", "" },
    { "cairn generate SmolLM2-135M --prompt Once --temperature 0", "a directory that was downloaded" },
  },
}
prose.logits = {
  about = { "Prints what a model says of tokens that are given by their numbers: the logits of the token after the " ..
    "last, or with --positions all of the one after each. The model is that of a directory with config.json and " ..
    "safetensors files, or of a run." },
  examples = { { "cairn logits SmolLM2-135M --tokens 1,2,3 --json", "" },
               { "cairn logits t5-small --tokens 37,1 --decoder-tokens 0", "what its decoder begins with" } },
}
prose.models = {
  about = { "Lists the families of models whose directories, as Transformers writes them, may stand in a recipe's " ..
    "place. Of a family that is named it prints the keys of config.json that are read; every other key that would " ..
    "change the model is refused." },
  examples = { { "cairn models", "" }, { "cairn models qwen3 --json", "the keys of one" } },
}
prose.eval = {
  about = { "The same as cairn evaluate." },
  examples = { { "cairn eval SmolLM2-135M data=book.txt --json", "perplexity of a directory that was downloaded" } },
}
prose.evaluate = {
  about = {
    "Runs a trained model over data and prints its loss and metrics, as its run did in training: of the newest " ..
      "complete checkpoint of a run's directory (with --best of the best one), or of the checkpoint that is named. " ..
      "Without other data these are what the run held out (eval_data, eval_fraction). data=FILE evaluates with all " ..
      "of a file where the recipe has an option eval_data; other options of the recipe are taken, too. The run is " ..
      "only read: nothing of it is changed or locked, and it may still be training.",
    "A safetensors file is evaluated by the recipe that is named after it, a model's directory by itself.",
  },
  examples = {
    { "cairn evaluate run", "what the run held out" },
    { "cairn evaluate run data=other.txt --json", "all of another file" },
    { "cairn evaluate model.safetensors gpt2 layers=6 width=384 data=other.txt", "weights alone" },
  },
}
prose.predict = {
  about = {
    "Reads rows and prints an answer for each, as JSON lines. Rows are JSON lines, or a table (CSV, TSV) whose " ..
      "first line names its columns; they come from standard input or from --input. A row must have what " ..
      "the model was trained with: a text for classify, the columns for regress, arrays by the names of its inputs " ..
      "for a recipe of one's own that has a predictor. Other columns are ignored. An invalid row " ..
      "ends the command with exit code 3 and names its line. The recipe is not needed, and nothing of the run is " ..
      "changed.",
  },
  examples = {
    { "cairn predict run --input new.csv", "" },
    { "echo '{\"text\": \"what a day\"}' | cairn predict run", "one row" },
  },
}
prose.export = {
  about = { "Writes the weights of a checkpoint as a safetensors file, by the names that Hugging Face's models " ..
    "have. --to hf writes a directory that Transformers reads: config.json, generation_config.json, weights in " ..
    "files of at most --shard-size, and the files of the tokenizer that the directory had which the weights " ..
    "came from. The directory must be new or empty. `cairn train --init` reads both. --to adapter writes the " ..
    "adapters of a run with lora= as PEFT reads them, --to gguf-adapter as llama.cpp does, and --merge adds them " ..
    "to the weights. --to gguf writes a GGUF file." },
  examples = { { "cairn export run model.safetensors", "" },
               { "cairn export run model --to hf", "from_pretrained(\"model\") goes on with it" },
               { "cairn export tuned adapter --to adapter", "of a run with lora=" },
               { "cairn export tuned model --to hf --merge base", "" } },
}
prose.devices = {
  about = { "Lists the devices of this machine: processors and their instruction set in use, and GPUs where the " ..
    "plugin libcairn_cuda.so is installed." },
  examples = { { "CAIRN_ISA=avx2 cairn devices", "with a lower instruction set forced" } },
}
prose.ops = {
  about = { "Lists the ops that graphs are built of, with operands, attributes and formulas; or formats, " ..
    "optimizers, schedules, and what mixed precision does to each op." },
  examples = { { "cairn ops linear softmax", "" }, { "cairn ops --optimizers", "" } },
}
prose.lua = {
  about = { "Runs a Lua program with `require \"cairn\"` at hand; its arguments are in `arg` and in `...`. What it " ..
    "returns, if that is a number, is the exit code." },
  examples = { { "cairn lua program.lua first second", "" } },
}

prose.recipes = "Options of the recipes that come with cairn, as `cairn train`, `plan`, `verify` and `profile` " ..
  "take them: key=value, with the default shown after the =, or what there is to choose from, the default first. " ..
  "`cairn train FILE --help` lists those of another recipe. A recipe is a Lua file with the rights of whoever runs " ..
  "it."

prose.environment = {
  { "CAIRN_RATES", "where this machine's rates come from for plans without a profile: cache (default: measured " ..
    "once, in less than a second, and kept in XDG_CACHE_HOME/cairn), measure (again), model (nothing is measured, " ..
    "nor are disks), or the path of a file that was kept. A disk's rates are measured and kept in the same way, " ..
    "for each file system." },
  { "CAIRN_ISA", "a lower instruction set than the best that the processor has: amx, avx512_bf16, avx512, avx2 or " ..
    "portable; on AArch64 sve_bf16, sve, neon_bf16, neon or portable. Other instruction sets make other bits." },
  { "CAIRN_LUA_ROOT", "the folder with the command's Lua files, bindings/lua and scripts, instead of the installed " ..
    "one." },
  { "CAIRN_LIBRARY", "path of libcairn.so.1 for the Lua binding, instead of the one that the command is linked with." },
  { "NO_COLOR", "no colours, if it is not empty." },
  { "TMPDIR", "where the disk tier's unnamed files and scratch checkpoints go (default: /tmp)." },
  { "XDG_CACHE_HOME", "where the tokens of text files and measured rates are kept (default: ~/.cache)." },
}

prose.exit = {
  { "0", "ok" }, { "1", "failure" }, { "2", "usage" }, { "3", "bad input" }, { "4", "out of memory or over budget" },
  { "5", "input or output failed" }, { "6", "the device was lost" }, { "7", "numbers that are not finite" },
  { "130", "interrupted, after saving" },
}

return prose
