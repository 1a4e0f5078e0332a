// SPDX-License-Identifier: Apache-2.0

#include "verbena/tools/rpc_bench/measure_endpoint.h"

#include <memory>

#include "verbena/tools/rpc_bench/endpoint_client.h"
#include "verbena/tools/rpc_bench/warm_up_and_measure.h"

namespace verbena::bench {

absl::StatusOr<Measurement> MeasureEndpoint(const Options& options, Device& device) {
  absl::StatusOr<std::unique_ptr<EndpointClient>> client = EndpointClient::Connect(options, device);
  if (!client.ok()) return client.status();
  Measurement measurement;
  absl::Status status = WarmUpAndMeasure(options, **client, **client, &measurement);
  if (!status.ok()) return status;
  return measurement;
}

}  // namespace verbena::bench
