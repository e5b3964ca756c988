"""Line charts with logarithmic axes, as SVG that can be read on a light and on a dark page; and tables in Markdown."""
import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 380, 76, 36, 64, 52
LIGHT = {"a": "#0b62c4", "b": "#c2410c", "c": "#15803d", "d": "#7e22ce"}
DARK = {"a": "#6cb2ff", "b": "#ff9d5c", "c": "#5fd38a", "d": "#c99bff"}


def colours(table):
    return " ".join(f".{kind} .line {{ stroke: {c} }} .{kind} .dot, .{kind} .name {{ fill: {c} }}" for kind, c in table.items())


STYLE = f"""
svg {{ font: 13px system-ui, sans-serif }} .line {{ fill: none; stroke-width: 2 }}
.page {{ fill: #ffffff }} .text {{ fill: #333333 }} .grid {{ stroke: #dddddd }} .axis {{ stroke: #777777 }}
{colours(LIGHT)}
@media (prefers-color-scheme: dark) {{
.page {{ fill: #14171c }} .text {{ fill: #d5d9e0 }} .grid {{ stroke: #333a44 }} .axis {{ stroke: #8a93a0 }}
{colours(DARK)}
}}
"""


def short(value):
    """A number as labels of an axis have it: 1, 10, 1k, 10M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def figure(value):
    """A measured number with three digits that count."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def table(heads, rows):
    """Markdown: the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    lines += ["| " + " | ".join(figure(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def ticks(low, high):
    """1, 2 and 5 of each power of ten between two numbers, or the powers alone if the range is wide."""
    steps = (1, 2, 5) if high / low < 300 else (1,)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in powers for step in steps if low * 0.999 <= step * 10.0**power <= high * 1.001]


def chart(title, across, up, series, label=short):
    """An SVG. `series` is a dictionary of names and lists of (x, y); points without y are left out."""
    series = {name: [(x, y) for x, y in points if y] for name, points in series.items()}
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    x_low, x_high = xs[0], max(xs[-1], xs[0] * 1.001)
    # At least a factor of ten from bottom to top: otherwise noise would look like growth.
    middle = math.sqrt(min(ys) * max(ys))
    y_low, y_high = min(min(ys) / 1.3, middle / 3.2), max(max(ys) * 1.3, middle * 3.2)

    def x_of(value):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / x_low) / math.log(x_high / x_low)

    def y_of(value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(value / y_low) / math.log(y_high / y_low)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="text" x="{LEFT}" y="22" font-weight="600">{escape(title)}</text>']
    for value in ticks(y_low, y_high):
        y = y_of(value)
        out.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        out.append(f'<text class="text" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    for value in xs:
        x = x_of(value)
        out.append(f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        out.append(f'<text class="text" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(label(value))}</text>')
    out.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    out.append(f'<text class="text" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}</text>')
    middle_y = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<text class="text" x="16" y="{middle_y}" text-anchor="middle" transform="rotate(-90 16 {middle_y})">{escape(up)}</text>')
    left = LEFT
    for kind, (name, points) in zip("abcd", series.items()):
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
        out.append(f'<g class="{kind}"><polyline class="line" points="{path}"/>')
        out += [f'<circle class="dot" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3.5"/>' for x, y in points]
        out.append(f'<circle class="dot" cx="{left + 5}" cy="44" r="4"/><text class="name" x="{left + 14}" y="48">{escape(name)}</text></g>')
        left += 34 + 7 * len(name)
    return "\n".join(out + ["</svg>"]) + "\n"
