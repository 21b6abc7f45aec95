// SPDX-License-Identifier: Apache-2.0
#include "harness/plugin/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string>

#include "harness/base/environment.h"
#include "harness/base/error.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/kernel/choice.h"
#include "harness/kernel/object_code.h"
#include "harness/plugin/loaded_files.h"
#include "harness/plugin/process_environment.h"
#include "harness/plugin/python_problem.h"
#include "harness/values/json_fields.h"

namespace moegate {
namespace {

using nlohmann::json;

// The C functions between a worker and the interpreter in it; python/moegate/_bridge.py has the
// same in the same order. A text that is returned is JSON, valid until the next call, {"error": …}
// where it failed.

/// Of Python: does `what` for the variant or operator `number`, with a problem and a JSON argument.
/// Returns 0, or 1 where it raised; what it says goes through PythonCalls::answer.
using PythonDispatch = int (*)(int64_t number, const char* what, int64_t problem, void* stream,
                               const char* argument);

/// Of the worker.
struct PythonCalls {
  void (*attach)(PythonDispatch dispatch);
  void (*answer)(const char* text);
  void (*add_operator)(const char* stated);
  void (*add_variant)(const char* stated);
  void (*add_source)(const char* file, const char* hash);
  const char* (*describe)(int64_t problem);
  /// Copies a whole tensor to (1) or from (0) the device.
  const char* (*move)(int64_t problem, const char* tensor, void* host, int64_t bytes, int up);
  /// {layout, shape, dtype}: packed weights, made where there are none; layout null: the workspace.
  const char* (*packed)(int64_t problem, const char* asked);
  /// Hands in the truth of an output.
  const char* (*expect)(int64_t problem, const char* output, void* truth, int64_t elements);
  /// Hands in the values, fp32, of an output whose format Python decodes.
  const char* (*decoded)(int64_t problem, const char* output, void* values, int64_t elements);
  void (*serve)();
};

/// Prints the interpreter's own path, its version and its library's path; the last as a name for
/// the loader where no such file is known.
constexpr const char* kWhereIsPython = R"(
import os, sys, sysconfig
get = sysconfig.get_config_var
names = [get('INSTSONAME'), get('LDLIBRARY'), 'libpython%d.%d.so.1.0' % sys.version_info[:2]]
names = [n for n in names if n and '.so' in n]
folders = [get('LIBDIR'), get('LIBPL'), os.path.join(sys.base_prefix, 'lib')]
folders += [os.path.join(f, get('MULTIARCH')) for f in folders if f and get('MULTIARCH')]
files = [os.path.join(f, n) for f in folders if f for n in names]
print(sys.executable)
print('.'.join(map(str, sys.version_info[:3])))
print(next((f for f in files if os.path.exists(f)), names[-1]))
)";

}  // namespace

std::optional<PythonPlace> place_of_python(std::vector<std::string> command) {
  command.insert(command.end(), {"-c", kWhereIsPython});
  Finished finished;
  try {
    finished = run_program(command, Output::capture);
  } catch (const Error&) {
    finished.exit = 1;
  }
  std::istringstream printed(finished.out);
  PythonPlace place;
  if (finished.exit != 0 || !std::getline(printed, place.program) ||
      !std::getline(printed, place.version) || !std::getline(printed, place.library)) {
    return std::nullopt;
  }
  return place;
}

PythonPlace find_python() {
  const std::string named = environment("MOEGATE_PYTHON");
  const std::string program = named.empty() ? "python3" : named;
  if (const auto place = place_of_python({program})) return *place;
  usage_error(
      "--module: the Python '{}' cannot be run, so no .py can be loaded; install python3, or set "
      "MOEGATE_PYTHON to another Python",
      program);
}

namespace {

using PythonMain = int (*)(int argc, char** argv);

/// Throws Error(usage) for one without a shared library, and for one older than Python 3.8.
PythonMain open_python(const PythonPlace& place) {
  // Global: modules of Python find its functions there.
  void* library = dlopen(place.library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    usage_error(
        "--module: {} has no shared library ({}); install it (Debian: libpython3.x; others: a "
        "build with --enable-shared), or set MOEGATE_PYTHON to another Python",
        place.program, dlerror());
  }
  void* main = dlsym(library, "Py_BytesMain");
  if (!main)
    usage_error("--module: {} is older than Python 3.8; set MOEGATE_PYTHON to a newer Python",
                place.library);
  return reinterpret_cast<PythonMain>(main);
}

/// One interpreter per process, and its last word. No exception may pass through its frames, in
/// either direction: they are C.
struct Interpreter {
  PythonDispatch dispatch = nullptr;
  std::string said;      // by answer()
  std::string returned;  // kept for the caller in Python
  const std::function<void()>* then = nullptr;
  bool served = false;
  std::exception_ptr fault;  // of `then`, or of what a file states
};
Interpreter& interpreter() {
  static Interpreter one;
  return one;
}

/// A function that Python calls; what it throws becomes {"error": …}.
template <auto function, class... Args>
const char* answered(Args... args) {
  std::string& text = interpreter().returned;
  try {
    text = function(args...).dump();
  } catch (const std::exception& e) {
    text = json{{"error", e.what()}}.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return text.c_str();
}

/// Runs what ends the worker, once Python returns, if it throws.
template <class Call>
void keeping_fault(Call call) {
  try {
    call();
  } catch (...) {
    if (!interpreter().fault) interpreter().fault = std::current_exception();
  }
}

/// Registers what a file states, which may be of any type.
void state(const char* text, void (*add)(const json&)) {
  keeping_fault([&] {
    const json stated = json::parse(text);
    try {
      add(stated);
    } catch (const json::exception& e) {
      usage_error("--module {}: the statement of {} has a value of the wrong type; correct it: {}",
                  stated.value("file", "?"), stated.value("name", "?"), e.what());
    }
  });
}

json facts_of(const DeviceFacts& device) {
  return {{"name", device.name},
          {"class", device.klass},
          {"processors", device.processors},
          {"cache_bytes", device.cache_bytes}};
}

/// Asks Python about a case on a device.
auto asking(int64_t number, const char* what) {
  return [number, what](const Case& c, const DeviceFacts& device) {
    return ask_python(number, what, 0, nullptr,
                      {{"params", c.params}, {"device", facts_of(device)}});
  };
}

void add_operator(const json& stated) {
  OpEntry entry;
  const int64_t number = stated.at("id");
  entry.name = stated.at("name");
  entry.help = stated.at("help");
  entry.yardstick = stated.at("yardstick");
  entry.file = stated.at("file");
  for (const json& param : stated.at("params")) {
    entry.params.push_back({param.at(0), param.at(1), param.at(2)});
  }
  for (const auto& [backend, names] : stated.at("before").items()) {
    auto& before = backend == "host" ? entry.before.host : entry.before.cuda;
    for (const json& name : names) before.push_back({.variant = name});
  }
  entry.validate = [number](const Case& c) {
    try {
      ask_python(number, "validate", 0, nullptr, c.params);
    } catch (const Error& e) {
      usage_error("{}: {}", c.where(), e.what());
    }
  };
  entry.make = [number](Device& device, const Case& c) {
    return std::make_unique<PythonProblem>(device, c, number);
  };
  register_op(std::move(entry));
}

std::vector<PoolSegment> segments_of(const json& said) {
  std::vector<PoolSegment> pool;
  for (const json& segment : said) {
    const auto address = segment.at(0).get<uintptr_t>();
    pool.push_back({reinterpret_cast<std::byte*>(address), segment.at(1), segment.at(2)});
  }
  return pool;
}

/// The variant that a file states. One that has configurations is told the device when it is
/// prepared: that is when it takes one.
Variant variant_of(const json& stated) {
  const int64_t number = stated.at("id");
  const auto has = stated.at("has").get<std::vector<std::string>>();
  const auto gives = [&](const char* name) { return std::ranges::count(has, name) > 0; };
  const auto call = [number, rows = stated.at("rows").get<std::string>()](const char* what,
                                                                          bool tells_device) {
    return [number, rows, what, tells_device](Problem& problem, const Launch& where) {
      problem.lay_out(rows);
      ask_python(number, what, number_of(problem), where.stream,
                 tells_device ? facts_of(where.device) : json());
    };
  };
  Variant variant;
  variant.op = stated.at("op");
  variant.name = stated.at("name");
  parse_name(stated.at("backend"), variant.backend);
  variant.help = stated.at("help");
  variant.file = stated.at("file");
  variant.leeway = {stated.at("tolerance"), stated.at("between")};
  variant.launch = call("launch", false);
  if (gives("prepare")) variant.prepare = call("prepare", true);
  if (gives("workspace")) variant.workspace = asking(number, "workspace");
  if (gives("unsupported")) variant.unsupported = asking(number, "unsupported");
  if (gives("segments")) {
    variant.pool = [number] {
      return segments_of(ask_python(number, "segments", 0, nullptr, nullptr));
    };
  }
  if (gives("choose")) {
    variant.path = [ask = asking(number, "choose")](const Case& c,
                                                    const DeviceFacts& device) -> std::string {
      return ask(c, device).at("path");
    };
  }
  return variant;
}

/// Of a variant of a file. Where the case leaves its block of rows to the configuration, that is a
/// parameter of the case, too.
Configuration configuration_of(const std::string& variant, const std::string& text, const Case& c) {
  constexpr std::string_view kRows = "BLOCK_SIZE_M=";
  Configuration made{variant + "/" + text, {}};
  const auto block = c.params.find("block");
  if (block == c.params.end() || block->second != kShippedBlock) return made;
  for (const std::string& part : split_list(text)) {
    if (part.starts_with(kRows)) made.params["block"] = part.substr(kRows.size());
  }
  if (made.params.empty()) {
    usage_error("variant {}: block = shipped, but its configuration {} has no BLOCK_SIZE_M",
                variant, text);
  }
  return made;
}

/// What a variant of a file that chooses can be asked.
Chooser chooser_of(int64_t number, const Variant& variant) {
  Chooser chooser{
      .op = variant.op, .variant = variant.name, .backend = variant.backend, .elsewhere = true};
  chooser.choose = [ask = asking(number, "choose"), name = variant.name](
                       const Case& c, const DeviceFacts& device) {
    const json said = ask(c, device);
    return Choice{configuration_of(name, said.at("config"), c), said.at("source"), said.at("entry"),
                  said.at("path"), said.at("stale")};
  };
  chooser.candidates = [ask = asking(number, "candidates"), name = variant.name](
                           const Case& c, const DeviceFacts& device) {
    std::vector<Configuration> all;
    for (const json& text : ask(c, device)) all.push_back(configuration_of(name, text, c));
    return all;
  };
  chooser.configured = [number](const std::string& text) {
    return variant_of(ask_python(number, "configured", 0, nullptr, text));
  };
  return chooser;
}

void add_variant(const json& stated) {
  Variant variant = variant_of(stated);
  if (variant.path) register_chooser(chooser_of(stated.at("id"), variant));
  register_variant(std::move(variant));
}

void add_source(const char* file, const char* hash) {
  static std::deque<std::string> kept;  // the table keeps pointers
  register_objects({{kept.emplace_back(file).c_str(), kept.emplace_back(hash).c_str()}});
}

json moved(int64_t problem, const char* name, void* host, int64_t bytes, int up) {
  for (Tensor* tensor : problem_of(problem).tensors()) {
    if (tensor->name() != name) continue;
    if (static_cast<int64_t>(tensor->bytes()) != bytes) {
      usage_error("tensor {} has {} bytes, not {}", name, tensor->bytes(), bytes);
    }
    Device& device = problem_of(problem).device();
    if (up != 0) {
      device.upload(tensor->data(), host, tensor->bytes());
    } else {
      device.download(host, tensor->data(), tensor->bytes());
    }
    return json::object();
  }
  usage_error("there is no tensor {}", name);
}

json packed(int64_t number, const char* text) {
  Problem& problem = problem_of(number);
  const json asked = json::parse(text);
  if (asked.at("layout").is_null()) {
    for (Tensor* tensor : problem.tensors()) {
      if (tensor->role() == Role::workspace) return describe_tensor(*tensor);
    }
    usage_error("there is no workspace; state it: @moegate.variant(..., workspace=bytes_of_case)");
  }
  const std::string layout = asked.at("layout");
  const auto shape = asked.at("shape").get<std::vector<int64_t>>();
  const DType dtype = dtype_of(asked.at("dtype"));
  size_t bytes = size_of(dtype);
  for (const int64_t extent : shape) bytes *= static_cast<size_t>(extent);
  json made = describe_tensor(problem.packed(layout, bytes, [](Tensor&) {}));
  made["dtype"] = asked.at("dtype");
  made["shape"] = shape;
  return made;
}

PythonProblem& python_problem_of(int64_t number) {
  auto* problem = dynamic_cast<PythonProblem*>(&problem_of(number));
  if (!problem) usage_error("the operator has its own truth");
  return *problem;
}

template <class T, auto take>
json handed_in(int64_t number, const char* output, void* data, int64_t elements) {
  const auto* values = static_cast<const T*>(data);
  (python_problem_of(number).*take)(output, {values, values + elements});
  return json::object();
}

void serve() {
  Interpreter& python = interpreter();
  if (python.fault) return;
  python.served = true;
  keeping_fault(*python.then);
}

constexpr PythonCalls kCalls = {
    .attach =
        [](PythonDispatch dispatch) {
          interpreter().dispatch = dispatch;
          watch_opens(true);  // what the interpreter reads of its own is behind it
        },
    .answer = [](const char* text) { interpreter().said = text; },
    .add_operator = [](const char* text) { state(text, add_operator); },
    .add_variant = [](const char* text) { state(text, add_variant); },
    .add_source = add_source,
    .describe = answered<describe_problem>,
    .move = answered<moved>,
    .packed = answered<packed>,
    .expect = answered<handed_in<double, &PythonProblem::expect>>,
    .decoded = answered<handed_in<float, &PythonProblem::take_values>>,
    .serve = serve,
};

/// Files of what was imported since the last call.
std::vector<std::string> loaded_modules() {
  if (!interpreter().dispatch) return {};
  const json said = ask_python(0, "loaded", 0, nullptr, nullptr);
  for (const json& folder : said.at("left_out")) leave_out_files_below(folder);
  for (const json& folder : said.at("packages")) name_files_below(folder);
  return said.at("files");
}

/// What the interpreter knows of itself, its packages and their compilers.
EnvironmentItems environment_of_python() {
  if (!interpreter().dispatch) return {};
  return ask_python(0, "environment", 0, nullptr, nullptr).get<EnvironmentItems>();
}

/// The worker's end in Python: of this program's folder (one that was kept for replays has no other
/// home), else of the tool's home.
std::filesystem::path worker_script() {
  const std::filesystem::path script = "python/moegate_worker.py";
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / script;
  return std::filesystem::exists(beside) ? beside : home() / script;
}

}  // namespace

json ask_python(int64_t number, const char* what, int64_t problem, void* stream,
                const json& argument) {
  Interpreter& python = interpreter();
  python.said.clear();
  const std::string text = argument.is_null() ? "" : argument.dump();
  const int failed =
      python.dispatch(number, what, problem, stream, text.empty() ? nullptr : text.c_str());
  if (failed != 0) throw Error(Exit::internal, python.said);
  return python.said.empty() ? json() : json::parse(python.said);
}

Registry attached_to_python(const Registry& registry) {
  Registry attached = registry;
  for (OpEntry& op : attached.ops) {
    op.make = [make = op.make](Device& device, const Case& c) {
      auto problem = make(device, c);
      give_number(*problem, c);
      return problem;
    };
  }
  return attached;
}

void with_python(const std::vector<std::string>& files, const std::function<void()>& then) {
  const PythonPlace place = find_python();
  const PythonMain main = open_python(place);
  Interpreter& python = interpreter();
  python.then = &then;
  watch_opens(false);
  ask_for_loaded(loaded_modules);
  ask_for_environment(environment_of_python);
  std::vector<std::string> words = {place.program, worker_script(),
                                    std::to_string(reinterpret_cast<uintptr_t>(&kCalls))};
  words.insert(words.end(), files.begin(), files.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int exit = main(static_cast<int>(words.size()), argv.data());
  if (python.fault) std::rethrow_exception(python.fault);
  if (python.served) return;
  if (!python.said.empty()) usage_error("{}", python.said);
  usage_error("--module: {} ended with code {} before it had imported {}", place.program, exit,
              fmt::join(files, ", "));
}

}  // namespace moegate
