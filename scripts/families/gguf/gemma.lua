-- Gemma.
return { families = { "gemma" } }
