#include "HlocRuns.h"

#include "hloc/driver/Driver.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hloc::mutation {

namespace {

using Clock = std::chrono::steady_clock;

/// What a child says after each command: this, then the bytes of the message.
struct Record {
  int32_t exitCode;
  uint32_t messageBytes;
};

std::string firstErrorOf(llvm::StringRef output) {
  llvm::StringRef first = output.split('\n').first;
  for (llvm::StringRef line : llvm::split(output, '\n'))
    if (line.contains("error:"))
      return line.substr(0, 400).str();
  return first.substr(0, 400).str();
}

void writeAll(int file, const void *bytes, size_t count) {
  for (const char *next = static_cast<const char *>(bytes); count;) {
    ssize_t written = write(file, next, count);
    if (written <= 0)
      std::_Exit(70);
    next += written, count -= size_t(written);
  }
}

/// In the child: output goes to a file in memory, of which the parent gets the first error.
class Child {
public:
  explicit Child(int pipe) : pipe(pipe), capture(memfd_create("output", 0)) {
    if (capture < 0 || dup2(capture, STDOUT_FILENO) < 0 || dup2(capture, STDERR_FILENO) < 0)
      std::_Exit(70);
  }

  [[noreturn]] void serve(const HlocJob &job, size_t next) {
    for (; next < job.commands.size(); ++next)
      if (run(job.commands[next]) != 0 && next < job.mustWork)
        break;
    std::_Exit(0);
  }

private:
  int run(const CommandLine &command) {
    if (ftruncate(capture, 0) != 0 || lseek(capture, 0, SEEK_SET) != 0)
      std::_Exit(70);
    std::vector<std::string> words = command;
    std::vector<char *> arguments;
    for (std::string &word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int code = runDriver(int(words.size()), arguments.data());
    llvm::outs().flush();
    llvm::errs().flush();
    std::fflush(nullptr);
    std::string message = firstErrorOf(output());
    Record record{code, uint32_t(message.size())};
    writeAll(pipe, &record, sizeof record);
    writeAll(pipe, message.data(), message.size());
    return code;
  }

  std::string output() const {
    std::string text(size_t(std::clamp<off_t>(lseek(capture, 0, SEEK_CUR), 0, 1 << 20)), '\0');
    ssize_t count = pread(capture, text.data(), text.size(), 0);
    text.resize(size_t(std::max<ssize_t>(count, 0)));
    return text;
  }

  int pipe, capture;
};

/// In the parent: one job, with the child that works on it.
class Worker {
public:
  Worker(size_t index, const HlocJob &job, double secondsPerRun)
      : number(index), job(job), secondsPerRun(secondsPerRun) {
    results.resize(job.commands.size());
    start();
  }

  size_t index() const { return number; }
  int file() const { return input; }
  bool finished() const { return next == results.size(); }
  std::vector<HlocOutcome> take() {
    collect();
    return std::move(results);
  }
  int millisecondsLeft() const {
    return std::max(0, int(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count()));
  }

  void read() {
    char bytes[4096];
    ssize_t count = ::read(input, bytes, sizeof bytes);
    if (count > 0) {
      pending.append(bytes, size_t(count));
      takeRecords();
    } else if (!stop()) {
      fail(HlocOutcome::crashed, "the program crashed");
    }
  }

  void checkTime() {
    if (millisecondsLeft() > 0)
      return;
    kill(child, SIGKILL);
    stop();
    fail(HlocOutcome::timedOut, "did not end in time");
  }

private:
  void start() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      std::abort();
    llvm::outs().flush();
    child = fork();
    if (child == 0) {
      close(ends[0]);
      Child(ends[1]).serve(job, next);
    }
    close(ends[1]);
    input = ends[0];
    pending.clear();
    restartClock();
  }

  void restartClock() {
    deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(secondsPerRun));
  }

  void takeRecords() {
    Record record;
    while (pending.size() >= sizeof record) {
      std::copy_n(pending.data(), sizeof record, reinterpret_cast<char *>(&record));
      if (pending.size() < sizeof record + record.messageBytes)
        return;
      results[next].exitCode = record.exitCode;
      results[next++].firstError = pending.substr(sizeof record, record.messageBytes);
      pending.erase(0, sizeof record + record.messageBytes);
      restartClock();
    }
  }

  /// The child's exit status, once it has ended.
  int collect() {
    int status = 0;
    if (child)
      waitpid(child, &status, 0), close(input);
    child = 0;
    return status;
  }

  /// True if nothing is left to do, or nothing can be done.
  bool stop() {
    int status = collect();
    if (!finished() && WIFEXITED(status) && WEXITSTATUS(status) == 0)
      next = results.size(); // a command failed that the others need
    return finished();
  }

  /// The command that was running has failed; another child goes on behind it.
  void fail(int code, const char *message) {
    if (finished())
      return;
    results[next].exitCode = code;
    results[next].firstError = message;
    next = next < job.mustWork ? results.size() : next + 1;
    if (!finished())
      start();
  }

  size_t number;
  const HlocJob &job;
  double secondsPerRun;
  std::vector<HlocOutcome> results;
  size_t next = 0; ///< command whose outcome comes next
  pid_t child = 0;
  int input = -1;
  std::string pending;
  Clock::time_point deadline;
};

class Pool {
public:
  Pool(llvm::ArrayRef<HlocJob> jobs, const HlocLimits &limits) : jobs(jobs), limits(limits), outcomes(jobs.size()) {}

  void run(const std::function<void(size_t, llvm::ArrayRef<HlocOutcome>)> &done) {
    size_t started = 0, reported = 0;
    while (reported < jobs.size()) {
      while (workers.size() < std::max(1u, limits.jobs) && started < jobs.size()) {
        workers.emplace_back(started, jobs[started], limits.secondsPerRun);
        ++started;
      }
      wait();
      for (; reported < jobs.size() && outcomes[reported]; outcomes[reported++].reset())
        done(reported, *outcomes[reported]);
    }
  }

private:
  void wait() {
    std::vector<pollfd> files;
    int milliseconds = 1000;
    for (const Worker &worker : workers) {
      files.push_back({worker.file(), POLLIN, 0});
      milliseconds = std::min(milliseconds, worker.millisecondsLeft());
    }
    poll(files.data(), files.size(), milliseconds);
    for (auto [file, worker] : llvm::zip_equal(files, workers)) {
      if (file.revents)
        worker.read();
      else
        worker.checkTime();
    }
    for (Worker &worker : workers)
      if (worker.finished())
        outcomes[worker.index()] = worker.take();
    workers.remove_if([&](const Worker &worker) { return outcomes[worker.index()].has_value(); });
  }

  llvm::ArrayRef<HlocJob> jobs;
  HlocLimits limits;
  std::vector<std::optional<std::vector<HlocOutcome>>> outcomes;
  std::list<Worker> workers;
};

} // namespace

void runHloc(llvm::ArrayRef<HlocJob> jobs, const HlocLimits &limits,
             const std::function<void(size_t job, llvm::ArrayRef<HlocOutcome> outcomes)> &done) {
  Pool(jobs, limits).run(done);
}

} // namespace hloc::mutation
