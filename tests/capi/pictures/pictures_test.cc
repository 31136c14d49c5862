// Chapter 8: pictures.
#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

struct PicturesTest : testing::Test {
  PicturesTest() {
    options.data = "drawings";
    options.width = options.height = 8;
    options.most = 20;
    options.workers = 2;
    options.ahead = 1;
  }
  cairn_pictures_t* open() {
    cairn_pictures_t* made = nullptr;
    EXPECT_EQ(cairn_pictures_open(instance.get(), &options, &made, failure), CAIRN_STATUS_OK)
        << failure.message();
    return made;
  }
  void refused(cairn_status_t status, const std::vector<std::string>& words) {
    cairn_pictures_t* made = nullptr;
    expect_failure(cairn_pictures_open(instance.get(), &options, &made, failure), status, failure, words);
    EXPECT_EQ(made, nullptr);
  }
  cairn::Instance instance = cairn::Instance::create();
  Failure failure;
  cairn_pictures_options_t options = CAIRN_PICTURES_OPTIONS_INIT;
};

TEST_F(PicturesTest, BatchesHaveWhatIsAskedFor) {
  cairn_pictures_t* pictures = open();
  cairn_pictures_info_t info = CAIRN_PICTURES_INFO_INIT;
  ASSERT_EQ(cairn_pictures_info(pictures, &info, failure), CAIRN_STATUS_OK);
  EXPECT_EQ(info.count, 20u);
  EXPECT_EQ(info.classes, 10u);
  cairn_text_t* content = nullptr;
  ASSERT_EQ(cairn_pictures_content(pictures, &content, failure), CAIRN_STATUS_OK);
  EXPECT_EQ(std::string(cairn_text_data(content)).substr(32), "-20");
  cairn_text_release(content);
  std::vector<float> pixels(6 * 8 * 8 * 3, -1);
  std::vector<int32_t> labels(6);
  cairn_pictures_batch_t to = CAIRN_PICTURES_BATCH_INIT;
  uint32_t rows = 0;
  ASSERT_EQ(cairn_pictures_read(pictures, 3, 6, &to, &rows, failure), CAIRN_STATUS_OK);  // nothing is wanted
  EXPECT_EQ(rows, 2u);
  to.pixels = pixels.data();
  to.labels = labels.data();
  ASSERT_EQ(cairn_pictures_read(pictures, 3, 6, &to, &rows, failure), CAIRN_STATUS_OK);
  EXPECT_TRUE(labels[1] >= 0 && labels[1] < 10);
  EXPECT_EQ(labels[2], -100);
  EXPECT_EQ(pixels.back(), 0);
  cairn_pictures_release(pictures);
}

TEST_F(PicturesTest, MistakesAreNamed) {
  cairn_pictures_t* pictures = open();
  cairn_pictures_batch_t to = CAIRN_PICTURES_BATCH_INIT;
  uint32_t rows = 0;
  expect_failure(cairn_pictures_read(pictures, 0, 0, &to, &rows, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"batch"});
  expect_failure(cairn_pictures_read(pictures, 0, 4, nullptr, &rows, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"to"});
  to.struct_size = 3;
  expect_failure(cairn_pictures_read(pictures, 0, 4, &to, &rows, failure), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"struct_size"});
  cairn_text_t* text = nullptr;
  expect_failure(cairn_pictures_class(pictures, 10, &text, failure), CAIRN_STATUS_NOT_FOUND, failure,
                 {"class 10"});
  expect_failure(cairn_pictures_text(pictures, 20, &text, failure), CAIRN_STATUS_NOT_FOUND, failure, {"20"});
  cairn_pictures_release(pictures);
  cairn_pictures_release(nullptr);
  options.width = 0;
  refused(CAIRN_STATUS_INVALID_ARGUMENT, {"options.width is 0"});
  options.width = 8;
  options.channels = 2;
  refused(CAIRN_STATUS_INVALID_ARGUMENT, {"options.channels is 2"});
  options.channels = 1;
  options.scale[0] = 0.5;
  refused(CAIRN_STATUS_INVALID_ARGUMENT, {"options.scale"});
  options.scale[0] = 0;
  options.classes = 11;
  refused(CAIRN_STATUS_INVALID_ARGUMENT, {"classes is 11"});
  options.data = "mnist:/nowhere";
  refused(CAIRN_STATUS_NOT_FOUND, {"/nowhere/train-images-idx3-ubyte"});
  options.data = nullptr;
  refused(CAIRN_STATUS_INVALID_ARGUMENT, {"options.data"});
}

}  // namespace
}  // namespace cairn_test
