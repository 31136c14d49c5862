#include "runtime/data/tokenizer/parts/part.h"

namespace cairn::tokenizer {
namespace {

int32_t token_number(const Json& json) {
  const int64_t id = json.whole();
  if (id < 0 || id >= kMostTokens) json.bad("there is no token ", id);
  return static_cast<int32_t>(id);
}

// ["[SEP]", 102]
int32_t named_token(const Json& json) {
  const std::vector<Json> pair = json.list();
  if (pair.size() != 2) json.bad("is not a token and its number");
  return token_number(pair[1]);
}

void trim(const Json& json, PostProcessing& made) {
  if (json.flag("trim_offsets", true)) made.trims.push_back({json.flag("add_prefix_space", true)});
}

void stand_around(const Json& json, PostProcessing& made, const std::vector<int32_t>& before,
                  const std::vector<int32_t>& after) {
  if (!made.before.empty() || !made.after.empty())
    json.bad("a second part that adds tokens to a text is not known");
  made.before = before;
  made.after = after;
}

void read_bert(const Json& json, PostProcessing& made) {
  stand_around(json, made, {named_token(json.at("cls"))}, {named_token(json.at("sep"))});
}
void read_roberta(const Json& json, PostProcessing& made) {
  trim(json, made);
  read_bert(json, made);
}

void read_template(const Json& json, PostProcessing& made) {
  std::vector<int32_t> sides[2];
  bool behind = false;  // whether the text has stood already
  for (const Json& piece : json.at("single").list()) {
    if (piece.has("Sequence")) {
      if (behind || piece.at("Sequence").text("id") != "A")
        piece.bad("the text of one sequence, A, stands once in a template");
      behind = true;
    } else if (piece.has("SpecialToken")) {
      const std::string_view name = piece.at("SpecialToken").text("id");
      for (const Json& id : json.at("special_tokens").at(name).at("ids").list())
        sides[behind].push_back(token_number(id));
    } else {
      piece.bad("is neither a Sequence nor a SpecialToken");
    }
  }
  if (!behind) json.bad("the text stands nowhere in its template");
  stand_around(json, made, sides[0], sides[1]);
}

void read_into(const Json& json, PostProcessing& made);
void read_sequence(const Json& json, PostProcessing& made) {
  for (const Json& item : json.at("processors").list()) read_into(item, made);
}

struct Reader {
  void (*read)(const Json&, PostProcessing&);
};
struct Row {
  std::string_view name;
  void (*read)(const Json&, PostProcessing&);
  Reader make(const Json&) const { return {read}; }
};
constexpr Row kRows[] = {
    {"BertProcessing", read_bert},         {"ByteLevel", trim},
    {"RobertaProcessing", read_roberta},   {"Sequence", read_sequence},
    {"TemplateProcessing", read_template},
};

void read_into(const Json& json, PostProcessing& made) {
  json.made(kRows, "post-processor").read(json, made);
}

}  // namespace

PostProcessing read_post_processor(const Json& json) {
  PostProcessing made;
  read_into(json, made);
  return made;
}

}  // namespace cairn::tokenizer
