-- Keys of a config.json, of any family, that change nothing in what a model computes from tokens: what wrote the file
-- and in which type, numbers of special tokens, what generation and other tasks use, how parameters begin.
local keys = {}
for key in ([[
  _name_or_path _num_labels architectures torch_dtype dtype transformers_version use_cache initializer_range
  bos_token_id eos_token_id pad_token_id unk_token_id sep_token_id cls_token_id mask_token_id decoder_start_token_id
  tokenizer_class tokenizer_version prefix problem_type finetuning_task task_specific_params id2label label2id
  output_attentions output_hidden_states output_scores return_dict return_dict_in_generate use_return_dict torchscript
  attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal
  gradient_checkpointing chunk_size_feed_forward pretraining_tp attention_dropout hidden_dropout dropout resid_pdrop
  embd_pdrop attn_pdrop classifier_dropout summary_activation summary_first_dropout summary_proj_to_labels summary_type
  summary_use_proj max_length min_length max_new_tokens do_sample early_stopping num_beams num_beam_groups
  diversity_penalty temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size
  encoder_no_repeat_ngram_size bad_words_ids num_return_sequences forced_bos_token_id forced_eos_token_id
  remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens tf_legacy_loss
  use_bfloat16 unsloth_version unsloth_fixed model_max_length max_sequence_length tie_encoder_decoder
  auto_map cache_implementation rescale_prefix_init residual_dropout embedding_dropout _commit_hash
]]):gmatch("%S+") do keys[key] = true end
return keys
