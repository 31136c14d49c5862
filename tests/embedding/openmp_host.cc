// A host with parallel regions of its own: before, around and after a training run.
#include <omp.h>

#include <cstring>

#include "tests/embedding/host.h"

namespace {

constexpr int kThreads = 4;

Result trained() {
  Result result;
  result.status = embedded_run(2, 0, 3, nullptr, result.digest, result.message);
  return result;
}

// A loop whose result says whether all of the host's threads took part in it.
void own_work() {
  long sum = 0;
  int most = 0;
#pragma omp parallel for num_threads(kThreads) reduction(+ : sum) reduction(max : most)
  for (int i = 0; i < 1000; ++i) {
    sum += i;
    most = omp_get_num_threads();
  }
  require(sum == 499500, "the host's sum is %ld", sum);
  require(most == kThreads, "the host's loop had %d threads", most);
}

int around(int, char**) {
  const int before = omp_get_max_threads();
  own_work();
  const Result alone = trained();
  own_work();
  Result results[kThreads];
#pragma omp parallel num_threads(kThreads)
  results[omp_get_thread_num()] = trained();
  for (const Result& result : results) {
    if (result.status != 0) return print(result);
    require(std::strcmp(result.digest, alone.digest) == 0, "other bits inside of a parallel region");
  }
  own_work();
  require(omp_get_max_threads() == before, "the host's number of threads was changed to %d",
          omp_get_max_threads());
  return print(alone);
}

}  // namespace

int main(int count, char** arguments) { return dispatch(count, arguments, {{"around", around}}); }
