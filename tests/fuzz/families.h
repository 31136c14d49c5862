// Targets that live in files of their own, and the samples they begin with.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cairn::fuzz {

void tokens(std::span<const std::byte> input);
std::vector<std::string> token_seeds();

// Input: two bytes with the size of a text, the text, a model. The model is taken as it is, and with all
// bytes and an unknown piece added.
void tokenizer(std::span<const std::byte> input);
std::vector<std::string> tokenizer_seeds();

// Input: two bytes that say how many merges, then the text to learn from.
void tokenizer_train(std::span<const std::byte> input);
std::vector<std::string> tokenizer_train_seeds();

// Input: a byte that says which reader, a byte with the size of a text, the text, a published model's tokenizer.
void pretrained(std::span<const std::byte> input);
std::vector<std::string> pretrained_seeds();

// Input: values as JSON, a zero byte, the template.
void chat_template(std::span<const std::byte> input);
std::vector<std::string> chat_template_seeds();

// Input: four bytes with the size of a manifest, the manifest without its digest, tensors.bin.
void checkpoint(std::span<const std::byte> input);
std::vector<std::string> checkpoint_seeds();

// Through LuaJIT: JSON as the command reads it, and command lines with options of a recipe, one word a line.
void lua_json(std::span<const std::byte> input);
std::vector<std::string> lua_json_seeds();
void recipe_options(std::span<const std::byte> input);
std::vector<std::string> recipe_options_seeds();
void run_config(std::span<const std::byte> input);
std::vector<std::string> run_config_seeds();
// A row of instruction data.
void instruction_row(std::span<const std::byte> input);
std::vector<std::string> instruction_row_seeds();

// Pictures: a file; one of MNIST's, of CIFAR's; a tar shard; lines of pairs.
void picture(std::span<const std::byte> input);
std::vector<std::string> picture_seeds();
void mnist(std::span<const std::byte> input);
std::vector<std::string> mnist_seeds();
void cifar(std::span<const std::byte> input);
std::vector<std::string> cifar_seeds();
void tar(std::span<const std::byte> input);
std::vector<std::string> tar_seeds();
void picture_pairs(std::span<const std::byte> input);
std::vector<std::string> picture_pairs_seeds();

}  // namespace cairn::fuzz
