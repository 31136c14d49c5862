-- cairn eval, which is cairn evaluate.
return require "cli.commands.evaluate"
