-- StarCoder2. Its window is in no file.
return {
  families = { "starcoder2" },
  keys = { { "attention.layer_norm_epsilon", "norm_epsilon", "f32" }, { "attention.layer_norm_rms_epsilon" } },
  complete = function(config, m) config.sliding_window = m.key("attention.sliding_window") end,
}
