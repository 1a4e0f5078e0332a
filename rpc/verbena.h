// SPDX-License-Identifier: Apache-2.0
//
// Everything that a program with generated stubs or services includes.

#pragma once

#include "verbena/rpc/attachment.h"
#include "verbena/rpc/channel.h"
#include "verbena/rpc/client_context.h"
#include "verbena/rpc/executor.h"
#include "verbena/rpc/server.h"
#include "verbena/rpc/server_context.h"
#include "verbena/rpc/service.h"
#include "verbena/rpc/unary_call.h"
#include "verbena/transport/buffer.h"
#include "verbena/transport/buffer_pool.h"
#include "verbena/transport/memory_budget.h"
