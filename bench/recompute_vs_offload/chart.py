"""Panels of log-log curves as one SVG: bytes freed per added second over the bytes of a value."""
import math

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 620, 430, 62, 40, 150, 48
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
GREYS = ("#222222", "#777777", "#aaaaaa")
SIZES = (2**16, 2**28)


def _number(value, units, step):
    at = 0
    while value >= step and at < len(units) - 1:
        value, at = value / step, at + 1
    return f"{value:g} {units[at]}"


def _spread(labels, gap, low, high):
    """Moves labels (y, ...) apart, keeping their order."""
    labels = sorted(labels)
    ys = [label[0] for label in labels]
    for i in range(1, len(ys)):
        ys[i] = max(ys[i], ys[i - 1] + gap)
    if ys and ys[-1] > high:
        ys[-1] = high
        for i in range(len(ys) - 2, -1, -1):
            ys[i] = min(ys[i], ys[i + 1] - gap)
    return [(max(y, low), *label[1:]) for y, label in zip(ys, labels)]


def _panel(title, ops, links, left, top, limits):
    inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    x0, y0 = left + LEFT, top + TOP
    low, high = limits

    def x(size):
        return x0 + inner_w * math.log(size / SIZES[0]) / math.log(SIZES[1] / SIZES[0])

    def y(rate):
        return y0 + inner_h * (1 - math.log(rate / low) / math.log(high / low))

    out = [f'<text x="{x0}" y="{top + 24}" font-size="15" font-weight="bold">{title}</text>',
           f'<rect x="{x0}" y="{y0}" width="{inner_w}" height="{inner_h}" fill="none" stroke="#999"/>']
    size = SIZES[0]
    while size <= SIZES[1]:
        out.append(f'<line x1="{x(size):.1f}" x2="{x(size):.1f}" y1="{y0}" y2="{y0 + inner_h}" stroke="#e6e6e6"/>')
        out.append(f'<text x="{x(size):.1f}" y="{y0 + inner_h + 17}" text-anchor="middle">'
                   f'{_number(size, ("B", "KiB", "MiB", "GiB"), 1024)}</text>')
        size *= 8
    rate = low
    while rate <= high * 1.001:
        out.append(f'<line x1="{x0}" x2="{x0 + inner_w}" y1="{y(rate):.1f}" y2="{y(rate):.1f}" stroke="#e6e6e6"/>')
        out.append(f'<text x="{x0 - 6}" y="{y(rate) + 4:.1f}" text-anchor="end">'
                   f'{_number(rate / 1e6, ("MB/s", "GB/s", "TB/s"), 1000)}</text>')
        rate *= 10
    out.append(f'<text x="{x0 + inner_w / 2}" y="{y0 + inner_h + 36}" text-anchor="middle">bytes of the value</text>')
    labels = []
    for number, (tier, link) in enumerate(links.items()):
        sizes = [SIZES[0] * 2 ** (i / 2) for i in range(int(2 * math.log2(SIZES[1] / SIZES[0])) + 1)]
        line = [(s, link.freed_per_second(s)) for s in sizes if s >= 2**16]
        path = " ".join(f"{x(s):.1f},{y(r):.1f}" for s, r in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{GREYS[number % 3]}" stroke-width="2" stroke-dasharray="7 4"/>')
        labels.append((y(line[-1][1]), f"copy: {tier}", GREYS[number % 3]))
    for number, (op, points) in enumerate(ops.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x(s):.1f},{y(r):.1f}" for s, r, _ in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(s):.1f}" cy="{y(r):.1f}" r="3" fill="{colour}"><title>{op}, {rows} tokens: '
                f'{r / 1e9:.3g} GB/s</title></circle>' for s, r, rows in points]
        labels.append((y(points[-1][1]), op, colour))
    for at, text, colour in _spread(labels, 15, y0 + 6, y0 + inner_h - 2):
        out.append(f'<text x="{x0 + inner_w + 8}" y="{at + 4:.1f}" fill="{colour}">{text}</text>')
    return out


def _limits(ops, links):
    rates = [rate for points in ops.values() for _, rate, _ in points]
    rates += [link.freed_per_second(size) for link in links.values() for size in SIZES]
    return 10 ** math.floor(math.log10(min(rates))), 10 ** math.ceil(math.log10(max(rates)))


def draw(panels):
    """panels: (title, {op: [(bytes, bytes per second, rows)]}, {tier: link with freed_per_second(bytes)}), two to a row."""
    rows = (len(panels) + 1) // 2
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {rows * HEIGHT + 40}" '
           f'width="{2 * WIDTH}" height="{rows * HEIGHT + 40}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="26" font-size="17" font-weight="bold">Bytes freed per added second: made again (solid), '
           'copied out and back with nothing to hide behind (dashed)</text>']
    for i, (title, ops, links) in enumerate(panels):
        out += _panel(title, ops, links, i % 2 * WIDTH, 40 + i // 2 * HEIGHT, _limits(ops, links))
    return "\n".join(out + ["</svg>"]) + "\n"
