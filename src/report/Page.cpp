#include "Page.h"

namespace hloc {

std::string pageWith(llvm::StringRef blocks) {
  std::string page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     // Nothing is fetched, whatever a name in the program looks like.
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "script-src 'unsafe-inline' blob:; worker-src blob:; style-src 'unsafe-inline'; img-src data:\">\n"
                     "<title>hloc report</title>\n<style>\n";
  page += pageStyle;
  page += "</style>\n</head>\n<body>\n<div id=\"app\"></div>\n"
          "<noscript>This page shows a compilation by a script, which is part of it.</noscript>\n";
  page += blocks.str();
  page += "<script>window.Prism = { manual: true };</script>\n<script id=\"libraries\">\n";
  page += pageLibraries;
  page += "</script>\n<script>\n";
  page += pageScript;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

} // namespace hloc
