-- GLM-4-0414.
return {
  families = { "glm4" },
  more = function(put, _, a) put("rope.dimension_count", "u32", a.ropes.all.dim) end,
}
