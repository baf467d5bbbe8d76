"""How a page looks, asked of the browser: what is cut off, what touches, what stands out."""

OPENED = "document.querySelectorAll('details').forEach(part => part.open = true)"
# Elements whose right edge is not on the screen, by name.
OUTSIDE = """[...document.querySelectorAll('body *')]
    .filter(part => part.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map(part => part.tagName + ' ' + part.textContent.slice(0, 40))"""
# Pairs of texts of one plot that touch each other.
TOUCHING = """[...document.querySelectorAll('svg')].flatMap(plot => {
    const texts = [...plot.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
    return texts.flatMap(([one, a], at) => texts.slice(at + 1)
        .filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom)
        .map(([other]) => one + ' / ' + other));
})"""
COLOUR = "getComputedStyle(document.querySelector({!r})).getPropertyValue({!r})"


def luminance(colour: str) -> float:
    """WCAG 2.2, of `rgb(r, g, b)` or `#rrggbb`."""
    if colour.startswith("#"):
        long = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(long[at : at + 2], 16) for at in (0, 2, 4)]
    else:
        parts = [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 3294.6 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
