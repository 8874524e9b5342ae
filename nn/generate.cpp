#include <carousel/nn/generate.h>

#include <algorithm>
#include <cmath>

namespace carousel {
namespace {

using Texts = std::vector<std::vector<int64_t>>;

// A model and what it has read of some texts of equal length.
class Reader {
 public:
  Reader(const CharacterModel& model, int64_t rows) : model_(model), rows_(rows), state_(model.initial_state(rows)) {}

  // The logits [rows, V] behind the texts, which begin with what was read before.
  Tensor logits_after(const Texts& texts) {
    const auto end = std::ssize(texts.front());
    const int64_t context = model_.context().value_or(end);
    if (end - begin_ > context) {  // positions change for all tokens: the newest are read afresh
      begin_ = read_ = end - context;
      state_ = model_.initial_state(rows_);
    }
    std::vector<int64_t> unread;
    for (const std::vector<int64_t>& text : texts) unread.insert(unread.end(), text.begin() + read_, text.end());
    ModelResult result = model_.forward(Tensor::from(unread, {rows_, end - read_}), state_);
    state_ = std::move(result.state);
    read_ = end;
    return result.logits.value().select(1, -1);
  }

 private:
  const CharacterModel& model_;
  int64_t rows_;
  State state_;
  int64_t begin_ = 0;  // the state began with this token
  int64_t read_ = 0;   // and has read up to that one
};

void check_prompt(const CharacterModel& model, std::span<const int64_t> prompt) {
  const int64_t vocabulary = model.config().vocabulary_size;
  for (const int64_t token : prompt) {
    check<IndexError>(token >= 0 && token < vocabulary, "generate", "prompt tokens must be in [0, {}): got {}",
                      vocabulary, token);
  }
}

// The next token of a row: `logits` is undefined before the first of an empty prompt.
GeneratedToken draw(const Tensor& logits, int64_t vocabulary, int64_t row, const std::vector<int64_t>& text,
                    const GenerateOptions& options, Rng& rng) {
  if (!logits.defined()) {
    return {row, rng.next_integer(0, vocabulary),
            options.log_probabilities ? -std::log(static_cast<double>(vocabulary)) : 0};
  }
  const Tensor own = logits.select(0, row);
  const int64_t token = sample(own, options.sampling, rng, text);
  return {row, token, options.log_probabilities ? log_probability(own, token) : 0};
}

}  // namespace

std::vector<std::vector<int64_t>> generate_rows(const CharacterModel& model, std::span<const int64_t> prompt,
                                                const GenerateOptions& options, std::span<Rng> rngs) {
  check_options(options.sampling);
  check<ValueError>(options.length >= 0, "generate", "length must be >= 0: got {}", options.length);
  check<ValueError>(!rngs.empty(), "generate", "needs a generator for each text: got none");
  check_prompt(model, prompt);
  const NoGrad no_grad;
  const auto rows = std::ssize(rngs);
  Reader reader(model, rows);
  Texts texts(rngs.size(), {prompt.begin(), prompt.end()});
  std::vector<int64_t> lengths(rngs.size(), options.length);  // shorter where a row was ended
  for (int64_t made = 0; made < *std::max_element(lengths.begin(), lengths.end()); ++made) {
    const Tensor logits = texts.front().empty() ? Tensor() : reader.logits_after(texts);
    for (int64_t row = 0; row < rows; ++row) {
      const auto i = static_cast<size_t>(row);
      std::vector<int64_t>& text = texts[i];
      if (made >= lengths[i]) {  // it has ended; what it goes on with is for the others' sake
        text.push_back(0);
        continue;
      }
      const GeneratedToken next = draw(logits, model.config().vocabulary_size, row, text, options, rngs[i]);
      text.push_back(next.token);
      if (options.on_token && !options.on_token(next)) lengths[i] = made + 1;
    }
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].erase(texts[i].begin(), texts[i].begin() + std::ssize(prompt));
    texts[i].resize(static_cast<size_t>(lengths[i]));
  }
  return texts;
}

std::vector<int64_t> generate(const CharacterModel& model, std::span<const int64_t> prompt,
                              const GenerateOptions& options, Rng& rng) {
  return std::move(generate_rows(model, prompt, options, {&rng, 1}).front());
}

}  // namespace carousel
