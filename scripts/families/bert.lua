-- BERT: every norm follows the sum that a part of a block makes with its input; learned positions, types of tokens
-- (which text of a pair they are of), biases everywhere. Sentence models such as MiniLM are it, too.

return {
  words = "BERT, MiniLM, BGE, E5: masked tokens, classes, tags",
  recipe = "encoder",
  learned = true,  -- positions: no keys of rotary ones
  defaults = {
    vocab_size = 30522, hidden_size = 768, intermediate_size = 3072, num_hidden_layers = 12, num_attention_heads = 12,
    hidden_act = "gelu", max_position_embeddings = 512, type_vocab_size = 2, layer_norm_eps = 1e-12,
    tie_word_embeddings = true,
  },
  fixed = { is_decoder = false, position_embedding_type = "absolute", problem_type = "single_label_classification",
            hidden_dropout_prob = "any", attention_probs_dropout_prob = "any", pooler_fc_size = "any",
            pooler_num_attention_heads = "any", pooler_num_fc_layers = "any", pooler_size_per_head = "any",
            pooler_type = "any", directionality = "any" },
  shape = function(c, a)
    a.norm = { kind = "layer", eps = c.layer_norm_eps, bias = true }
    a.norms = { after_attention = "attention.output.LayerNorm", after_mlp = "output.LayerNorm" }
    a.bidirectional, a.norm_sums, a.gated = true, true, false
    a.bias = { q = true, k = true, v = true, o = true, up = true, down = true }
    a.types, a.blocks = c.type_vocab_size, "bert.encoder.layer."
    a.names = { tokens = "bert.embeddings.word_embeddings", positions = "bert.embeddings.position_embeddings",
                types = "bert.embeddings.token_type_embeddings", embedded = "bert.embeddings.LayerNorm",
                block = "bert.encoder.layer.%d", attention = "attention", q = "self.query", k = "self.key",
                v = "self.value", o = "output.dense", mlp = "", up = "intermediate.dense", down = "output.dense",
                head = "cls.predictions.decoder" }
    a.heads_by_task = {
      mlm = { dense = "cls.predictions.transform.dense", bias = true, activation = a.activation,
              norm = "cls.predictions.transform.LayerNorm", table_bias = "cls.predictions.bias" },
      classify = { pooling = "cls", dense = "bert.pooler.dense", bias = true, activation = "tanh",
                   last = "classifier" },
      tag = { last = "classifier" },
    }
    a.class = "Bert"
    a.unused = { "position_ids$", "^cls%.seq_relationship%." }
    a.same = { { "cls.predictions.decoder.bias", "cls.predictions.bias" } }
    require("families.parts.encoder").settle(c, a)
  end,
}
