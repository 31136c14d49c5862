-- ModernBERT: a norm before each part of a block, a gated feed-forward layer, rotary positions, and in two of three
-- layers a window around each token and a base of their own.
local NONE = require("families.parts.config").NONE
local fail = require "cli.base.fail"
local unicode = require "cli.base.unicode"

return {
  words = "ModernBERT: masked tokens, classes, tags",
  recipe = "encoder",
  defaults = {
    vocab_size = 50368, hidden_size = 768, intermediate_size = 1152, num_hidden_layers = 22, num_attention_heads = 12,
    hidden_activation = "gelu", max_position_embeddings = 8192, norm_eps = 1e-5, norm_bias = false,
    attention_bias = false, mlp_bias = false, decoder_bias = true, classifier_pooling = "cls",
    classifier_bias = false, classifier_activation = "gelu", tie_word_embeddings = true, layer_types = NONE,
    local_attention = 128, global_attn_every_n_layers = 3, global_rope_theta = 160000, local_rope_theta = 10000,
  },
  fixed = { is_decoder = false, problem_type = "single_label_classification", hidden_act = "any",
            -- What other keys say, or how it is computed.
            position_embedding_type = "any", layer_norm_eps = "any", initializer_cutoff_factor = "any",
            mlp_dropout = "any", deterministic_flash_attn = "any", sparse_prediction = "any",
            sparse_pred_ignore_index = "any", repad_logits_with_grad = "any", reference_compile = "any" },
  shape = function(c, a, architecture)
    a.norm = { kind = "layer", eps = c.norm_eps, bias = c.norm_bias }
    a.norms = { before_attention = "attn_norm", before_mlp = "mlp_norm" }
    a.bidirectional, a.plain_first, a.fused_qkv, a.fused_gate_up = true, true, "columns", true
    a.activation = architecture.activation(c.hidden_activation, a.where, "hidden_activation")
    a.init.residual = a.init.scale / math.sqrt(2 * a.layers)
    a.names = { tokens = "model.embeddings.tok_embeddings", embedded = "model.embeddings.norm",
                block = "model.layers.%d", final = "model.final_norm", attention = "attn", qkv = "Wqkv", o = "Wo",
                mlp = "mlp", gate_up = "Wi", down = "Wo", head = "decoder" }
    c.sliding_window = math.floor(c.local_attention / 2) + 1  -- half of it on each side, and the token itself
    local types = architecture.windows(c, a, function(i)
      return (i - 1) % c.global_attn_every_n_layers == 0 and "full_attention" or "sliding_attention"
    end)
    architecture.rope_by_type(c, a, types, { full_attention = c.global_rope_theta,
                                             sliding_attention = c.local_rope_theta })
    if c.classifier_pooling ~= "cls" and c.classifier_pooling ~= "mean" then
      fail.input(("%s: classifier_pooling is '%s'; known: cls mean"):format(a.where,
        unicode.shown(c.classifier_pooling)))
    end
    local function head(rows)
      rows.dense, rows.bias, rows.norm = "head.dense", c.classifier_bias, "head.norm"
      rows.activation = architecture.activation(c.classifier_activation, a.where, "classifier_activation")
      return rows
    end
    a.heads_by_task = {
      mlm = head { table_bias = c.decoder_bias and "decoder.bias" or nil },
      classify = head { pooling = c.classifier_pooling, last = "classifier" },
      tag = head { last = "classifier" },
    }
    a.class = "ModernBert"
    require("families.parts.encoder").settle(c, a)
  end,
}
