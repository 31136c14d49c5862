-- A recipe with one option of each kind, for the target recipe_options.
return {
  options = {
    { "layers", 4, "blocks", whole = true, least = 1 },
    { "batch", 8, "samples", whole = true, least = 1 },
    { "dropout", 0, "share", least = 0, below = 1 },
    { "fast", false, "or slow" },
    { "shape", "wide", "of the model", choices = { "wide", "deep" } },
    { "data", "random", "text file" },
  },
  model = function() end,
  dataset = function() end,
  training = { rate = 1e-3 },
}
