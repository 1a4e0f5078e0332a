// SPDX-License-Identifier: Apache-2.0

#include <optional>
#include <string>

#include "nlohmann/json.hpp"
#include "verbena/tools/rpc_bench/report.h"

namespace verbena::bench {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json LatencyJson(const std::optional<Latency>& latency) {
  return latency.has_value() ? Json{{"p50", latency->p50_us}, {"p99", latency->p99_us}}
                             : Json(nullptr);
}

Json ConditionsJson(const Conditions& conditions) {
  return {
      {"device", conditions.device},
      {"wire", conditions.wire},
      {"cores", conditions.cores},
      {"cpu_model", conditions.cpu_model},
      {"kernel", conditions.kernel},
      {"build_mode", conditions.build_mode},
      {"versions",
       {{"verbena", conditions.verbena_version},
        {"protobuf", conditions.protobuf_version},
        {"flatbuffers", conditions.flatbuffers_version},
        {"compiler", conditions.compiler}}},
  };
}

Json CeilingAroundJson(const std::optional<CeilingAround>& ceiling) {
  Json json;
  for (const char* key : {"rtt_us", "rtt_before_us", "rtt_after_us", "rtt_p99_us",
                          "ring_messages_per_second", "copy_bytes_per_second", "steady"}) {
    json[key] = nullptr;
  }
  if (!ceiling.has_value()) return json;
  json["rtt_us"] = ceiling->rtt_us();
  json["rtt_before_us"] = ceiling->rtt_before_us;
  json["rtt_after_us"] = ceiling->rtt_after_us;
  json["rtt_p99_us"] = ceiling->rtt_p99_us;
  json["ring_messages_per_second"] = ceiling->ring_messages_per_second;
  json["copy_bytes_per_second"] = ceiling->copy_bytes_per_second;
  json["steady"] = ceiling->IsSteady();
  return json;
}

}  // namespace

std::string ResultJson(const Options& options, const Conditions& conditions, const Result& result) {
  Json conditions_json = ConditionsJson(conditions);
  conditions_json["mode"] = ToString(options.mode);
  conditions_json["layer"] = ToString(options.layer);
  conditions_json["codec"] = ToString(options.codec);
  conditions_json["form"] = ToString(options.form);
  conditions_json["poll"] = ToString(options.poll);
  conditions_json["size_bytes"] = options.size_bytes;
  conditions_json["concurrency"] = options.concurrency;
  conditions_json["threads"] = options.threads;
  conditions_json["seconds"] = options.seconds;
  conditions_json["rate"] = options.rate > 0 ? Json(options.rate) : Json(nullptr);

  Json json = {
      {"rtt_us",
       {{"p50", result.rtt.p50_us},
        {"p99", result.rtt.p99_us},
        {"p999", result.rtt.p999_us},
        {"max", result.rtt.max_us}}},
      {"alone_rtt_us", LatencyJson(result.alone)},
      {"protobuf_rtt_us", LatencyJson(result.protobuf)},
      {"rebuilt_rtt_us", LatencyJson(result.rebuilt)},
      {"calls", result.calls},
      {"seconds", result.seconds},
      {"calls_per_second", result.calls_per_second},
      {"bytes_per_second", result.bytes_per_second},
      {"cpu_us_per_call",
       {{"client", OrNull(result.cpu_us.client)}, {"server", OrNull(result.cpu_us.server)}}},
      {"core_share",
       {{"client", OrNull(result.core_share.client)},
        {"server", OrNull(result.core_share.server)}}},
      {"allocations_per_call",
       {{"client", OrNull(result.allocations.client)},
        {"server", OrNull(result.allocations.server)},
        {"protobuf", OrNull(result.protobuf_allocations)}}},
      {"rnr_events", result.rnr_events},
      {"ceiling", CeilingAroundJson(result.ceiling)},
      {"ratio_to_ceiling", OrNull(RatioToCeiling(options, result))},
      {"conditions", conditions_json},
  };
  return json.dump(2) + "\n";
}

std::string CeilingJson(const Conditions& conditions, const Ceiling& ceiling) {
  Json copies = Json::array();
  for (const CopyRate& copy : ceiling.copies) {
    copies.push_back({{"bytes", copy.bytes}, {"bytes_per_second", copy.bytes_per_second}});
  }
  Json json = {
      {"rtt_us", {{"p50", ceiling.rtt_p50_us}, {"p99", ceiling.rtt_p99_us}}},
      {"ring_messages_per_second", ceiling.ring_messages_per_second},
      {"copy", copies},
      {"conditions", ConditionsJson(conditions)},
  };
  return json.dump(2) + "\n";
}

}  // namespace verbena::bench
