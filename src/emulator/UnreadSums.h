#pragma once
#include "Program.h"

namespace hloc::emulator {

/// wgmmas that are known not to read the sums that they replace, since scale-d was set to false by constants just
/// before, read zeros instead: then nobody takes those registers for used.
void dropUnreadSums(Kernel &kernel);

} // namespace hloc::emulator
