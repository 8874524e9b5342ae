#include "../examples/temporary_folder.h"
#include "expect_error.h"

#include <carousel/nn/saved_model.h>
#include <carousel/tensor/compare.h>

#include <sys/resource.h>

#include <filesystem>

namespace carousel {
namespace {

using test::expect_error;

CharacterModel make(const CharacterModelConfig& config, uint64_t seed = 1) {
  Rng rng(seed);
  const LayerConfig layer = layer_kind(config.model).default_config();
  fields_from_json(config.model, R"({"nonlinearity": "relu"})", layer.field_list());
  return CharacterModel(config, layer, rng);
}

const CharacterModelConfig small{
    .vocabulary_size = 5, .embedding_size = 3, .hidden_size = 4, .layers = 2, .dropout = 0.25};
const std::string vocabulary = "\na\xC3\xA9z\xE6\x97\xA5";

TEST(SavedModel, ComesBackReadyToRun) {
  const examples::TemporaryFolder folder;
  const CharacterModel model = make(small);
  Archive archive;
  save_model(model, vocabulary, archive);
  save_archive(archive, folder.path("checkpoint.carousel"));
  for (const std::string& path : {folder.path(""), folder.path("checkpoint.carousel")}) {
    const SavedModel loaded = load(path);
    EXPECT_EQ(loaded.vocabulary, vocabulary);
    EXPECT_EQ(loaded.model->config().layers, 2);
    EXPECT_EQ(loaded.model->config().dropout, 0.25);
    const Tensor tokens = Tensor::from(std::vector<int64_t>{0, 4, 2}, {1, 3});
    EXPECT_TRUE(identical(loaded.model->forward(tokens, loaded.model->initial_state(1)).logits.value().contiguous(),
                          model.forward(tokens, model.initial_state(1)).logits.value().contiguous()));
  }
}

TEST(SavedModel, NamesFoldersAndFiles) {
  const examples::TemporaryFolder folder;
  EXPECT_EQ(checkpoint_path(folder.path("x")), folder.path("x"));
  EXPECT_EQ(checkpoint_path(std::filesystem::path(folder.path("")).parent_path().string()),
            folder.path("checkpoint.carousel"));
  expect_error<IoError>([&] { load(folder.path("")); }, {"checkpoint.carousel", "No such file"});
}

TEST(SavedModel, AnotherArchitectureIsRefusedWithBothDescriptionsAndUnchanged) {  // HD-33
  Archive archive;
  save_model(make(small), vocabulary, archive);
  for (const CharacterModelConfig& other :
       {CharacterModelConfig{.vocabulary_size = 5, .embedding_size = 3, .hidden_size = 8, .layers = 2},
        CharacterModelConfig{.vocabulary_size = 5, .embedding_size = 3, .hidden_size = 4, .layers = 3},
        CharacterModelConfig{.vocabulary_size = 6, .embedding_size = 3, .hidden_size = 4, .layers = 2},
        CharacterModelConfig{.vocabulary_size = 4, .embedding_size = 3, .hidden_size = 4, .layers = 2}}) {
    CharacterModel target = make(other, 2);
    const CharacterModel before = make(other, 2);
    expect_error<FormatError>([&] { load_weights(archive, target); },
                              {"[load]", "missing", "unexpected", "mismatched", "the file holds", R"("hidden_size":4)",
                               "here is", R"("nonlinearity":"relu")"});
    for (size_t i = 0; i < target.parameters().size(); ++i) {
      EXPECT_TRUE(identical(target.parameters()[i].variable.value(), before.parameters()[i].variable.value()));
    }
  }
}

// Peak memory of this process, in KiB.
int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(SavedModel, AConfigurationLargerThanItsTensorsIsRefusedWithoutMemory) {  // HD-31
  Archive whole;
  save_model(make(small), vocabulary, whole);
  whole.source = "DIR/x";
  const int64_t before = peak_memory();
  for (const char* lie : {R"({"vocabulary_size":5,"embedding_size":3,"hidden_size":8192,"layers":2})",
                          R"({"vocabulary_size":5,"embedding_size":65536,"hidden_size":2048,"layers":2})",
                          R"({"vocabulary_size":5,"embedding_size":3,"hidden_size":512,"layers":1000})"}) {
    Archive archive = whole;
    archive.texts["model/config"] = lie;
    expect_error<FormatError>([&] { make_model(archive); }, {"[load]", "DIR/x", "mismatched"});
  }
  EXPECT_LT(peak_memory() - before, 100 * 1024);
}

TEST(SavedModel, AVocabularyOfAnotherSizeIsRefused) {
  Archive archive;
  save_model(make(small), vocabulary, archive);
  archive.source = "DIR/x";
  archive.texts["vocabulary"] = "abcdef";
  expect_error<FormatError>([&] { make_model(archive); }, {"[load]", "DIR/x", "code points", "got 6", "5"});
}

TEST(SavedModel, MissingOrWrongPartsAreNamed) {
  Archive whole;
  save_model(make(small), vocabulary, whole);
  whole.source = "DIR/x";
  for (const char* part : {"model/config", "model/layer", "model/dtype", "vocabulary"}) {
    Archive archive = whole;
    archive.texts.erase(part);
    expect_error<FormatError>([&] { make_model(archive); }, {"DIR/x", part});
  }
  Archive archive = whole;
  archive.texts["model/config"] = R"({"model":"rnm","vocabulary_size":5})";
  expect_error<FormatError>([&] { make_model(archive); }, {"DIR/x", "'rnm'"});
  archive.texts["model/config"] = R"({"vocabulary_size":0})";
  expect_error<FormatError>([&] { make_model(archive); }, {"DIR/x", "vocabulary_size", "got 0"});
  archive = whole;
  archive.texts["model/dtype"] = "int64";
  expect_error<FormatError>([&] { make_model(archive); }, {"DIR/x", "'int64'"});
}

}  // namespace
}  // namespace carousel
