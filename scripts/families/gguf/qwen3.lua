-- Qwen3, dense.
return { families = { "qwen3" } }
