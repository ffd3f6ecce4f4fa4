#include "hloc/driver/Driver.h"

int main(int argc, char **argv) { return hloc::runDriver(argc, argv); }
