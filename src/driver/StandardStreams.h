#pragma once
// Standard input, output and error as a process got them. Results are written to llvm::outs() and messages to
// llvm::errs() wherever they arise; whether all of it arrived is asked once, at the end.

namespace hloc {

/// Puts a descriptor that refuses to be used in the place of each standard stream that is closed (`hloc ... >&-`):
/// otherwise the next file to be opened takes its number and gets what was meant for the stream. To be called before
/// anything is opened.
void occupyClosedStandardStreams();

/// Flushes standard output and error. What was lost on the way (a full disk, a closed descriptor) is said on standard
/// error and turns the exit code 0 into that of an unwritable file; other codes already tell of a failure.
int finishStandardStreams(int code);

} // namespace hloc
