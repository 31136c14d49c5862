-- The graph of an encoder and a decoder from its architecture (families.parts.architecture, and of the family t5:
-- decoder_layers, buckets and farthest of distances, the tokens start, last and pad). Each block is a region with the
-- regions attn, cross (of the decoder) and mlp inside.
local network = require "families.parts.network"
local nn = require("cairn").nn

local seq2seq = {}

-- What x[batch, seq, width] attends to: rows of `of`, of which each sample has lengths[batch].
local function attention(a, graph, x, of, prefix, seen)
  local wide = a.heads * a.head_dim
  local function product(y, name, inputs, outputs, scale)
    return network.linear(graph, y, prefix .. name, inputs, outputs, false, scale)
  end
  local q = product(x, "q", a.width, wide, a.init.q)
  local k, v = product(of, "k", a.width, wide, a.init.scale), product(of, "v", a.width, wide, a.init.scale)
  local y = graph:op("attention", q, k, v, nil, nil, seen.lengths, nil, seen.distances,
    { heads = a.heads, causal = not seen.causal and 0 or nil, scale = 1 })
  return product(y, "o", wide, a.width, a.init.o)
end

-- One block of the stack `side`, built from x[batch, seq, width]. encoded: what a decoder reads, as {value, lengths}.
local Block = nn.define("Seq2SeqBlock", function(self, a, side, layer, seen, encoded)
  self.a, self.prefix, self.seen, self.encoded = a, ("%s.block.%d.layer."):format(side, layer), seen, encoded
end, function(self, context, x)
  local a, graph, parts, drop = self.a, context.graph, 0, nn.Dropout(self.a.dropout or 0)
  local function part(region, build)
    local prefix, before = ("%s%d."):format(self.prefix, parts), x
    parts = parts + 1
    x = graph:region(region, nil, function()
      return before + drop:build(context, build(network.normed(graph, before, prefix .. "layer_norm", a.width, a.norm),
        prefix))
    end)
  end
  part("attn", function(y, prefix) return attention(a, graph, y, y, prefix .. "SelfAttention.", self.seen) end)
  if self.encoded then
    part("cross", function(y, prefix)
      return attention(a, graph, y, self.encoded.value, prefix .. "EncDecAttention.", self.encoded)
    end)
  end
  part("mlp", function(y, prefix) return network.feed_forward(a, graph, y, prefix .. "DenseReluDense.") end)
  return x
end)

-- The last hidden state of a stack of `layers` blocks over tokens[batch, seq]. Distances are one table for all of them.
local function stack(a, context, side, layers, tokens, seq, seen, encoded, segments)
  local graph, drop = context.graph, nn.Dropout(a.dropout or 0)
  local own = graph:parameter(side .. ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    { a.buckets, a.heads }, { init = "normal", scale = a.init.scale })
  seen.distances = graph:op("relative_bias", own, { queries = seq, keys = seq, farthest = a.farthest,
    bidirectional = seen.causal and 0 or nil })
  local x = drop:build(context, (graph:op("embedding", context.table, tokens)))
  local chain = nn.Sequential()
  nn.add_blocks(chain, layers, segments, function(layer) return Block(a, side, layer, seen, encoded), "" end)
  x = network.normed(graph, chain:build(context, x), side .. ".final_layer_norm", a.width, a.norm)
  return drop:build(context, x)
end

-- Builds the model from source[batch, seq], of which each sample has source_lengths[batch], and the decoder's
-- tokens[batch, target_seq]: returns its last hidden state and the head's weights. shape: {batch, seq, target_seq}.
function seq2seq.body(a, graph, training, shape, segments)
  local context = nn.context(graph, training)
  context.table = graph:parameter(a.names.tokens .. ".weight", { a.vocab, a.width },
    { init = "normal", scale = a.init.table })
  local source = graph:input("source", { shape.batch, shape.seq }, "i32")
  local lengths = graph:input("source_lengths", { shape.batch }, "i32")
  local tokens = graph:input("tokens", { shape.batch, shape.target_seq }, "i32")
  local encoded = graph:region("encoder", nil, function()
    return stack(a, context, "encoder", a.layers, source, shape.seq, { lengths = lengths }, nil, segments)
  end)
  local hidden = graph:region("decoder", nil, function()
    return stack(a, context, "decoder", a.decoder_layers, tokens, shape.target_seq, { causal = true },
      { value = encoded, lengths = lengths }, segments)
  end)
  return hidden, a.tied and context.table or graph:parameter(a.names.head .. ".weight", { a.vocab, a.width },
    { init = "normal", scale = a.init.table })
end

return seq2seq
