-- Qwen2 and Qwen2.5.
return { families = { "qwen2" } }
