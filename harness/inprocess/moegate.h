// SPDX-License-Identifier: Apache-2.0
// All that libmoegate.so shows: one measurement in a process that is somebody else's, for a caller
// in any language. Texts are JSON in UTF-8 (README.md has their fields). No exception leaves.
#pragma once

extern "C" {

struct moegate_session;

/// Launches what is measured, on the stream (a cudaStream_t; null on the host), without waiting.
/// Not 0: it failed, and the measurement is given up.
using moegate_launch = int (*)(void* user, void* stream);

/// Of this interface. A caller that was written for another number has to stop.
int moegate_abi(void);

/// Null where it fails: `error`, unless null, gets why, valid until this thread's next call. A
/// session belongs to the thread that opened it.
moegate_session* moegate_open(const char* options, const char** error);

/// Does `what` ("bench", "hash", "watch"). The answer, {"error": …, "exit": …} where it failed, is
/// valid until the session's next call.
const char* moegate_ask(moegate_session* session, const char* what, const char* question,
                        moegate_launch launch, void* user);

/// Ends the session and its run of the store.
void moegate_close(moegate_session* session);
}
