// Ops of the host: the words of their failures, and when the library lets go of them.
#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

// `user` of an op, with what is told of it.
struct Watched {
  int releases = 0;
  bool mute = false;

  cairn_custom_op_t op() {
    cairn_custom_op_t op = CAIRN_CUSTOM_OP_INIT;
    op.name = "square";
    op.inputs = op.outputs = 1;
    op.recomputable = 1;
    op.user = this;
    op.shape = [](void*, const cairn_tensor_t* in, cairn_tensor_t* out) -> int32_t {
      out[0] = in[0];
      return in[0].rank == 1 ? 0 : 1;
    };
    op.forward = [](void*, const cairn_tensor_t*, const cairn_tensor_t*, void*) -> int32_t {
      return CAIRN_STATUS_NON_FINITE;
    };
    op.failure_words = [](void* user) -> const char* {
      return static_cast<Watched*>(user)->mute ? nullptr : "the host's own words";
    };
    op.release_user = [](void* user) { ++static_cast<Watched*>(user)->releases; };
    return op;
  }
};

TEST(CustomOp, UserComesBackWhenNothingCanCallItAnyMore) {
  const Devices devices;
  Watched watched, refused;
  {
    cairn::Session session;
    {
      auto graph = cairn::Graph::create(devices.instance);
      graph.custom_op(watched.op());
      EXPECT_THROW(graph.custom_op(refused.op()), cairn::Error);  // of the same name
      graph.freeze(0, {graph.op("square", {graph.input("x", {4})})});
      session = cairn::Session::create(cairn::Plan::create(graph, devices.device), devices.device);
    }
    EXPECT_EQ(watched.releases, 0);
    session.write("x", {1.0f, 2.0f, 3.0f, 4.0f});
    Failure failure;
    expect_failure(cairn_session_run(session.get(), failure), CAIRN_STATUS_NON_FINITE, failure,
                   {"custom op 'square'", "NON_FINITE", ": the host's own words"});
  }
  EXPECT_EQ(watched.releases, 1);
  EXPECT_EQ(refused.releases, 0);
}

TEST(CustomOp, WordsOfTheHostAreAsked) {
  const Devices devices;
  Watched watched;
  auto graph = cairn::Graph::create(devices.instance);
  graph.custom_op(watched.op());
  const cairn_value_t matrix = graph.input("matrix", {4, 4});
  cairn_value_t out = 0;
  Failure failure;
  expect_failure(cairn_graph_op(graph.get(), "square", &matrix, 1, nullptr, 0, &out, 1, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"square", "the host's own words"});
  watched.mute = true;
  expect_failure(cairn_graph_op(graph.get(), "square", &matrix, 1, nullptr, 0, &out, 1, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"square", "refused"});
}

// A callback of another language's has no status for what was thrown there: it gives a negative number, and the words.
TEST(CustomOp, WordsStandInPlaceOfANumberThatIsNoStatus) {
  const Devices devices;
  Watched watched;
  auto graph = cairn::Graph::create(devices.instance);
  cairn_custom_op_t op = watched.op();
  op.forward = [](void*, const cairn_tensor_t*, const cairn_tensor_t*, void*) -> int32_t { return -1; };
  graph.custom_op(op);
  const auto y = graph.op("square", {graph.input("x", {4})});
  graph.freeze(cairn::Value{0}, {y});
  auto session = cairn::Session::create(cairn::Plan::create(graph, devices.device), devices.device);
  session.write("x", {1.0f, 2.0f, 3.0f, 4.0f});
  Failure failure;
  expect_failure(cairn_session_run(session.get(), failure), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"custom op 'square': its forward callback failed: the host's own words"});
}

TEST(CustomOp, AnOlderProgramsStructHasNeither) {
  const Devices devices;
  Watched watched;
  {
    auto graph = cairn::Graph::create(devices.instance);
    cairn_custom_op_t op = watched.op();
    op.struct_size = offsetof(cairn_custom_op_t, failure_words);
    graph.custom_op(op);
    cairn_value_t matrix = graph.input("matrix", {4, 4}), out = 0;
    Failure failure;
    EXPECT_EQ(cairn_graph_op(graph.get(), "square", &matrix, 1, nullptr, 0, &out, 1, failure),
              CAIRN_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(failure.message().find("own words"), std::string::npos);
  }
  EXPECT_EQ(watched.releases, 0);
}

}  // namespace
}  // namespace cairn_test
