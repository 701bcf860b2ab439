// tests/train/layout_mpi_test.cpp -- the gradient of a step does not know how the step was laid
// out. Every rank computes the whole step alone, then its part of it with the others; the sums must
// be the same for any ranks, micro-batches, sharing, and steps so small that ranks have no rows.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "loader/loader.hpp"
#include "prepare/prepare.hpp"
#include "support/mpi_main.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_data.hpp"
#include "train/micro_step.hpp"

namespace vlrerank {
namespace {

using test::world;

struct Layout {
  std::int64_t rows = 5;
  std::int64_t micro_batch_tokens = 1 << 20;
  bool share_prefix = true;
  std::int64_t recomputed_layers = 0;
};

/// The tiny model with the golden adapter (dropout on), and the golden rows.
class Layouts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Settings settings;
    settings.model.model = test_data("reference/model").string();
    settings.model.adapter = test_data("reference/swift-run/adapter_init").string();
    session_ = std::make_unique<Session>(
        open_session(settings, Purpose::training, 128, {}, [](std::string const&) {}));
    for (auto* linear : session_->model->linears())
      if (linear->lora) linear->lora->dropout = 0.1;
    folder_ = std::make_unique<TemporaryFolder>();
    auto const alone = make_self_communicator(at::kCPU);
    auto request = prepare_request(settings.data, 42, session_->tokenizer);
    request.inputs = {test_data("reference/swift-run/train.jsonl").string()};
    data_ = std::make_unique<DataSet>(open_or_prepare(request, folder_->path(), *alone));
  }
  static void TearDownTestSuite() {
    data_.reset();
    session_.reset();
    folder_.reset();
  }

  struct Gradient {
    double loss = 0;
    at::Tensor flat;
  };

  /// Step 0 of this layout as `rank` of `comm` computes it, summed over `comm`.
  Gradient gradient(Layout const& layout, LossSettings const& loss_settings, Communicator& comm) {
    PlanSettings settings;
    settings.global_batch_size = layout.rows;
    settings.micro_batch_tokens = layout.micro_batch_tokens;
    settings.share_prefix = layout.share_prefix;
    settings.listwise = loss_settings.kind == "listwise";
    TrainPlan const plan(*data_, settings);
    auto const step = plan.step(0, comm.rank(), comm.size());
    Loader loader(*data_, session_->prompt_ids, layout.share_prefix,
                  [&](std::int64_t number) -> std::optional<std::vector<MicroBatch>> {
                    if (number > 0) return std::nullopt;
                    return step.mine;
                  });
    ForwardContext context;
    context.training = true;
    context.seed = 3;
    context.recomputed_layers = layout.recomputed_layers;
    auto const loss = loss_parameters(loss_settings);
    auto sum = at::zeros({1}, at::kDouble);
    for (std::size_t i = 0; i < step.mine.size(); ++i)
      sum.add_(micro_step(*session_, loader.next(), loss, context).result.loss);
    comm.all_reduce(sum, Reduce::sum).wait();
    std::vector<at::Tensor> parts;
    for (auto& arena : session_->arenas) {
      parts.push_back(arena.gradients().clone());
      arena.gradients().zero_();
    }
    Gradient out{sum.item<double>(), at::cat(parts)};
    comm.all_reduce(out.flat, Reduce::sum).wait();
    return out;
  }

  void expect_equal(Layout const& layout, LossSettings const& loss) {
    auto const alone = make_self_communicator(at::kCPU);
    Layout plain;
    plain.rows = layout.rows;
    auto const want = gradient(plain, loss, *alone);
    auto const got = gradient(layout, loss, world());
    EXPECT_NEAR(got.loss, want.loss, 1e-6);
    EXPECT_LT(((got.flat - want.flat).norm() / want.flat.norm()).item<double>(), 1e-5);
    EXPECT_GT(want.flat.norm().item<double>(), 1e-3);
  }

  static std::unique_ptr<Session> session_;
  static std::unique_ptr<TemporaryFolder> folder_;
  static std::unique_ptr<DataSet> data_;
};
std::unique_ptr<Session> Layouts::session_;
std::unique_ptr<TemporaryFolder> Layouts::folder_;
std::unique_ptr<DataSet> Layouts::data_;

TEST_F(Layouts, RanksChangeNothing) {
  expect_equal({}, {});
}

TEST_F(Layouts, RanksWithoutRowsChangeNothing) {
  expect_equal({.rows = 1}, {});
}

TEST_F(Layouts, TheWholeSetInOneStepChangesNothing) {
  expect_equal({.rows = 12}, {});
}

TEST_F(Layouts, SmallMicroBatchesChangeNothing) {
  expect_equal({.rows = 7, .micro_batch_tokens = 250}, {});
}

TEST_F(Layouts, PlainDocumentsEqualSharedPrefixes) {
  expect_equal({.rows = 6, .micro_batch_tokens = 900, .share_prefix = false}, {});
}

TEST_F(Layouts, RecomputedLayersChangeNothing) {
  expect_equal({.recomputed_layers = 3}, {});
}

TEST_F(Layouts, ListwiseGroupsStayWhole) {
  LossSettings listwise;
  listwise.kind = "listwise";
  expect_equal({.rows = 7, .micro_batch_tokens = 250, .share_prefix = false}, listwise);
}

}  // namespace
}  // namespace vlrerank

VLR_MPI_TEST_MAIN()
