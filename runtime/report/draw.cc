// What the pictures share: style, axes, numbers in words.
#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/report/report.h"

namespace cairn::plan {

// Literal colours for both grounds, no variables: a picture alone is drawn by anything that draws SVG.
std::string_view picture_style() {
  return "<style>"
         ".ink{fill:#20262e}.t{font-size:11px;fill:#5a6572}.s{font-size:11.5px}.b{font-weight:600}"
         ".g{stroke:#e6eaee}.bg{fill:#fff}.lane{fill:#f0f3f6}.rule{stroke:#20262e}.stall{fill:#20262e}"
         ".box{fill:#fff;fill-opacity:.92;stroke:#c3cad2}.ring{fill:none;stroke:#20262e}"
         ".limit{stroke:#b3261e}.limit-t{fill:#b3261e}.edge{stroke:#fff}.h{fill:#000;fill-opacity:0}"
         ".h:hover{fill-opacity:.07}.halo{paint-order:stroke;stroke:#fff;stroke-width:3.5px;stroke-linejoin:"
         "round}"
         "@media(prefers-color-scheme:dark){"
         ".ink{fill:#e4e9ee}.t{fill:#9aa6b2}.g{stroke:#2d353e}.bg{fill:#1b2127}.lane{fill:#242b33}"
         ".rule{stroke:#e4e9ee}.stall{fill:#e4e9ee}.box{fill:#1b2127;stroke:#4a5561}.ring{stroke:#e4e9ee}"
         ".limit{stroke:#ff8f85}.limit-t{fill:#ff8f85}.edge,.halo{stroke:#1b2127}.h{fill:#fff}"
         ".h:hover{fill-opacity:.1}}"
         "</style>";
}

std::string open_svg(int height, std::string_view name) {
  return cat("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 ", kPictureWidth, " ", height,
             "' font-family='system-ui, Helvetica, Arial, sans-serif' font-size='12' class='ink' role='img' "
             "aria-label='",
             label(name), "'>");
}

double tick(double range, int count, bool binary) {
  if (range <= 0) return 1;
  const double raw = range / count;
  if (binary) return std::exp2(std::ceil(std::log2(raw)));
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (double m : {1.0, 2.0, 5.0})
    if (raw <= m * power) return m * power;
  return 10 * power;
}

double seconds_tick(double range, int count, double most) {
  const double least = most >= 1 ? 1e-3 : most >= 1e-3 ? 1e-5 : 1e-7;  // what human_seconds tells apart
  return std::max(tick(range, count, false), least);
}

std::string tick_seconds(double seconds) {
  std::string words = human_seconds(seconds);
  const size_t unit = words.find(' ');
  size_t end = unit;
  while (end > 0 && words[end - 1] == '0') --end;
  if (end > 0 && words[end - 1] == '.') --end;
  return words.find('.') < unit ? words.substr(0, end) + words.substr(unit) : words;
}

double text_width(std::string_view text, double font_size) {
  return .62 * font_size * static_cast<double>(characters(text));
}

std::string percent(double share) {
  const double x = std::abs(share);
  if (x < 5e-6) return "0 %";
  return cat(fixed(100 * share, x < .001 ? 3 : x < .1 ? 2 : x < 10 ? 1 : 0), " %");
}

std::string over(double seconds, double keep_all_seconds) {
  if (keep_all_seconds <= 0) return "";
  const double share = seconds / keep_all_seconds - 1;
  if (share < 5e-7) return " (no slower than keeping everything)";
  return cat(" (+", percent(share), ")");
}

}  // namespace cairn::plan
