// The page is a template (page/) with data: a block for the module and one for each kernel, JSON that is compressed and
// written in base64, which no name or text of the program can break out of. Blocks of kernels are read when they are
// looked at.

#include "hloc/report/Report.h"

#include "ChainJson.h"
#include "KernelHlo.h"
#include "MachineCode.h"
#include "Page.h"
#include "Recorder.h"

#include "hloc/emulator/Ptx.h"
#include "hloc/run/EstimatedModule.h"
#include "hloc/run/LintFacts.h"
#include "hloc/support/Parallel.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

namespace hloc {
namespace {

using llvm::json::OStream;

std::string jsonText(llvm::function_ref<void(OStream &)> write) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OStream json(os);
  json.object([&] { write(json); });
  return text;
}

void text(OStream &json, llvm::StringRef key, llvm::StringRef value) {
  json.attribute(key, llvm::json::fixUTF8(value));
}

std::string packed(llvm::StringRef text) {
  llvm::SmallVector<uint8_t> bytes;
  llvm::compression::zlib::compress(llvm::arrayRefFromStringRef(text), bytes,
                                    llvm::compression::zlib::BestSizeCompression);
  return llvm::encodeBase64(bytes);
}

/// The data of one page.
class ReportBuilder {
public:
  ReportBuilder(const ReportRequest &request, const Toolchain &toolchain, DiagnosticEngine &diagnostics)
      : request(request), toolchain(toolchain), diagnostics(diagnostics),
        compiler(optionsOf(request), toolchain, recorder, diagnostics) {}

  std::string page() {
    compile();
    if (request.run)
      executed = shownLines(IrKind::Ptx, request.run->ptx);
    std::string blocks;
    if (compiled)
      for (size_t i = 0; i < compiled->kernels.size(); ++i)
        blocks += block("kernel-" + std::to_string(i), jsonText([&](OStream &json) { writeKernel(json, i); }));
    blocks = block("module", jsonText([&](OStream &json) { writeModule(json); })) + blocks;
    return pageWith(blocks);
  }

private:
  static CompilerOptions optionsOf(const ReportRequest &request) {
    CompilerOptions options = request.options;
    options.lineInfo = options.locations = true;
    if (!options.remarks)
      options.remarks = "";
    options.explanation = nullptr;
    return options;
  }

  static std::string block(const std::string &id, const std::string &text) {
    return "<script type=\"text/plain\" id=\"" + id + "\">" + packed(text) + "</script>\n";
  }

  void compile() {
    std::unique_ptr<HloModule> module = compiler.parse(request.file);
    if (!module)
      return;
    fused = compiler.fuse(*module, request.target);
    if (fused && !request.only.empty())
      fused = compiler.only(*fused, request.only, request.target);
    if (!fused)
      return;
    compiled = compiler.compile(*fused, request.target, Stage::Ptx, /*keepTexts=*/true);
    for (const auto &computation : fused->computations())
      for (const HloInstruction *instr : computation->instructions())
        byName.try_emplace(instr->name(), instr);
    if (!compiled)
      return;
    assemble();
    facts = lintFactsOf(compiled->manifest, fused.get());
    DiagnosticEngine unheard; // what the compiler has written is read
    if (std::optional<EstimatedModule> made =
            estimateModule(compiled->manifest, compiled->ptx, request.device, unheard))
      for (EstimatedKernel &kernel : made->kernels)
        estimates[kernel.name] = std::move(kernel);
  }

  /// Machine code and what it takes of registers, if there is what makes it.
  void assemble() {
    if (!toolchain.has(Tool::Ptxas) || compiled->kernels.empty())
      return;
    AssembleOptions options;
    options.assembler = AssemblerChoice::Ptxas;
    options.flags = {"-lineinfo"};
    options.jobs = numWorkers(request.options.jobs);
    llvm::FailureOr<std::string> cubin = compiler.assemble(*compiled, request.target, options);
    if (succeeded(cubin))
      machineCode = disassemble(*cubin, request.file->name(), toolchain);
  }

  // --- the module

  void writeModule(OStream &json) {
    json.attribute("version", HLOC_VERSION);
    text(json, "file", request.file->name());
    json.attribute("target", request.target.name);
    json.attributeObject("device", [&] {
      const DeviceModel &device = request.device;
      json.attribute("name", device.name);
      json.attribute("multiprocessors", int64_t(device.multiprocessors));
      json.attribute("gigahertz", device.gigahertz);
      json.attribute("bytes_per_second", device.dramBytesPerSecond);
    });
    LineTable table;
    const std::vector<uint32_t> source = table.numbersOf(sourceLines());
    writeSteps(json, "source", source);
    json.attributeObject("sourceTable", [&] { table.write(json); });
    if (RecordedTrack *track = recorder.find(""))
      json.attributeObject("passes", [&] { writeTrack(json, *track); });
    writeDiagnostics(json, "diagnostics", diagnostics);
    if (request.run)
      writeRun(json, *request.run);
    if (!compiled)
      return;
    Manifest manifest = compiled->manifest;
    for (ModuleBuffer &buffer : manifest.buffers)
      buffer.constantData.clear();
    json.attributeBegin("manifest");
    json.rawValue(printManifest(manifest));
    json.attributeEnd();
    json.attributeArray("digests", [&] { // of PTX: numbers of 64 bits are none of JSON's readers'
      for (const CompiledKernel &kernel : compiled->kernels)
        json.value(llvm::utohexstr(llvm::xxh3_64bits(shownPtx(kernel.spec.name))));
    });
    if (!executed.empty())
      json.attributeArray("executed", [&] {
        for (const CompiledKernel &kernel : compiled->kernels)
          json.array([&] {
            const llvm::ArrayRef<ShownLine> body = bodyOf(executed, kernel.spec.name);
            json.value(body.empty() ? 0 : body.front().number);
            json.value(body.empty() ? 0 : body.back().number);
          });
      });
    json.attributeObject("estimates", [&] {
      for (const auto &[name, kernel] : estimates)
        json.attributeObject(llvm::json::fixUTF8(name), [&, &kernel = kernel] {
          writeEstimate(json, kernel, estimate(kernel.counts, request.device));
        });
    });
  }

  /// A kernel's PTX as it is shown, without places.
  std::string shownPtx(llvm::StringRef kernel) {
    std::string text;
    if (const RecordedTrack *track = recorder.find(kernel))
      for (const ShownLine &line : track->ptx)
        text += line.text + "\n";
    return text;
  }

  /// Each line of the HLO was made for itself.
  std::vector<ShownLine> sourceLines() const {
    std::vector<ShownLine> lines = shownLines(IrKind::Hlo, request.file->text());
    for (ShownLine &line : lines)
      line.hloLines.push_back(line.number);
    return lines;
  }

  void writeTrack(OStream &json, const RecordedTrack &track) {
    json.attributeArray("stages", [&] {
      for (const RecordedPass &pass : track.passes)
        json.object([&] {
          json.attribute("kind", pass.kind);
          text(json, "name", pass.name);
          json.attribute("ms", pass.milliseconds);
          writeSteps(json, "text", pass.lines);
        });
    });
    track.table.write(json);
  }

  void writeDiagnostics(OStream &json, llvm::StringRef key, const DiagnosticEngine &engine) {
    json.attributeArray(key, [&] {
      for (const Diagnostic &diagnostic : engine.diagnostics())
        json.object([&] {
          json.attribute("kind", hloc::text(diagnostic.kind));
          json.attribute("severity", diagnostic.isError() ? "error" : isRemark(diagnostic.kind) ? "remark" : "warning");
          text(json, "message", diagnostic.message);
          writePlace(json, diagnostic, diagnostic.range);
          json.attributeArray("notes", [&] {
            for (const DiagnosticNote &note : diagnostic.notes)
              json.object([&] {
                text(json, "message", note.message);
                writePlace(json, diagnostic, note.range);
              });
          });
        });
    });
  }

  void writePlace(OStream &json, const Diagnostic &diagnostic, SourceRange range) {
    if (!diagnostic.file || !range.isValid())
      return;
    text(json, "file", diagnostic.file->name());
    json.attribute("line", diagnostic.file->lineColumn(range.begin).line);
    text(json, "text", diagnostic.file->lineAt(range.begin));
    json.attribute("isSource", diagnostic.file->name() == request.file->name());
  }

  void writeRun(OStream &json, const RunReport &run) {
    json.attributeObject("run", [&] {
      constexpr const char *verdicts[] = {"not run", "wrong", "executed", "undecided", "agrees"};
      json.attribute("verdict", verdicts[unsigned(run.verdict)]);
      text(json, "agreement", run.agreement);
      json.attributeArray("notes", [&] {
        for (const std::string &note : run.notes)
          json.value(llvm::json::fixUTF8(note));
      });
      for (const ProgramRun &one : run.runs)
        if (one.counters) {
          std::string counters;
          llvm::raw_string_ostream os(counters);
          printJson(*one.counters, os);
          json.attributeBegin("counters");
          json.rawValue(counters);
          json.attributeEnd();
          break;
        }
      if (run.chain)
        json.attributeObject("chain", [&] { writeChain(json, *run.chain); });
      if (request.reported)
        writeDiagnostics(json, "reported", *request.reported);
    });
  }

  // --- a kernel

  void writeKernel(OStream &json, size_t number) {
    const CompiledKernel &kernel = compiled->kernels[number];
    RecordedTrack nothing;
    RecordedTrack *track = recorder.find(kernel.spec.name);
    if (!track)
      track = &nothing;
    if (auto fusion = byName.find(kernel.spec.instruction); fusion != byName.end())
      writeSteps(json, "hlo", track->table.numbersOf(hloOf(*fusion->second, *request.file)));
    writeLint(json, kernel, *track);
    writeCounters(json, kernel.spec.name, *track);
    if (auto code = machineCode.find(kernel.spec.name); code != machineCode.end())
      track->passes.push_back({"sass", "sass", 0, track->table.numbersOf(code->second)});
    writeTrack(json, *track);
  }

  /// Findings at lines of the PTX as it is shown, from 0.
  void writeLint(OStream &json, const CompiledKernel &kernel, const RecordedTrack &track) {
    auto file = std::make_shared<const SourceFile>("ptx", kernel.ptx);
    DiagnosticEngine unheard;
    unheard.setFile(file);
    std::optional<ptx::Module> module = ptx::parse(unheard);
    json.attributeArray("lint", [&] {
      if (!module)
        return;
      for (const lint::Finding &finding : lint::lint(*module, facts, {{}, request.target})) {
        const uint32_t line = finding.where.isValid() ? file->lineColumn(finding.where.begin).line : 0;
        auto shown = llvm::find_if(track.ptx, [&](const ShownLine &other) { return other.number == line; });
        json.object([&] {
          json.attribute("rule", lint::row(finding.rule).name);
          text(json, "message", finding.message);
          if (shown != track.ptx.end())
            json.attribute("line", int64_t(shown - track.ptx.begin()));
        });
      }
    });
  }

  /// The lines from that of the kernel's entry to its end; what is before and behind it may differ.
  static llvm::ArrayRef<ShownLine> bodyOf(llvm::ArrayRef<ShownLine> lines, llvm::StringRef kernel) {
    const std::string entry = (".entry " + kernel + "(").str();
    const auto *begin =
        llvm::find_if(lines, [&](const ShownLine &line) { return llvm::StringRef(line.text).contains(entry); });
    const auto *end = std::find_if(begin, lines.end(), [](const ShownLine &line) { return line.text == "}"; });
    return {begin, end};
  }

  /// Of a run: what it has executed, where that is not the PTX that is compiled here, becomes a text of its own.
  /// `counters`: `[line of the last PTX, warps, threads, requests, sectors, ideal ones, passes, ideal ones, divergent
  /// branches]`, of lines where something was counted. `executedAt`: where in it the kernel begins, `executedNumbers`:
  /// its lines' numbers in the file that was executed.
  void writeCounters(OStream &json, llvm::StringRef kernel, RecordedTrack &track) {
    if (!request.run || request.run->ptx.empty())
      return;
    const llvm::ArrayRef<ShownLine> body = bodyOf(executed, kernel);
    llvm::ArrayRef<ShownLine> shown = bodyOf(track.ptx, kernel);
    size_t first = size_t(shown.begin() - track.ptx.data());
    auto sameText = [](const ShownLine &a, const ShownLine &b) { return a.text == b.text; };
    if (!std::equal(shown.begin(), shown.end(), body.begin(), body.end(), sameText)) {
      track.passes.push_back({"ptx", "executed", 0, track.table.numbersOf(body)});
      first = 0;
    }
    const auto counted = request.run->runs.empty() ? llvm::ArrayRef<emulator::LineCounters>()
                                                   : llvm::ArrayRef(request.run->runs.front().lineCounters);
    std::vector<uint32_t> numbers;
    for (const ShownLine &line : body)
      numbers.push_back(line.number);
    json.attribute("executedAt", int64_t(first));
    writeSteps(json, "executedNumbers", numbers);
    json.attributeArray("counters", [&] {
      for (const ShownLine &line : body) {
        if (line.number >= counted.size() || !counted[line.number].warps)
          continue;
        const emulator::LineCounters &counters = counted[line.number];
        json.array([&] {
          json.value(int64_t(first + size_t(&line - body.begin())));
          for (uint64_t value : {counters.warps, counters.threads, counters.requests, counters.sectors,
                                 counters.idealSectors, counters.passes, counters.idealPasses, counters.divergent})
            json.value(value);
        });
      }
    });
  }

  const ReportRequest &request;
  const Toolchain &toolchain;
  DiagnosticEngine &diagnostics;
  Recorder recorder;
  Compiler compiler;
  std::unique_ptr<HloModule> fused;
  std::optional<CompiledModule> compiled;
  llvm::StringMap<const HloInstruction *> byName;
  std::map<std::string, lint::KernelFacts> facts;
  std::map<std::string, EstimatedKernel> estimates;
  std::map<std::string, std::vector<ShownLine>> machineCode; ///< by kernel
  std::vector<ShownLine> executed;                           ///< the PTX of the run
};

} // namespace

std::string reportPage(const ReportRequest &request, const Toolchain &toolchain, DiagnosticEngine &diagnostics) {
  return ReportBuilder(request, toolchain, diagnostics).page();
}

} // namespace hloc
