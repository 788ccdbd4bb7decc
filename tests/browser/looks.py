"""The look of a page, measured in the browser: colours behind texts, sizes, and what lies outside."""

from __future__ import annotations

from typing import Any

#: Functions for the scripts below.
COMMON = """
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const solid = (colour) => colour !== "none" && (numbers(colour).length < 4 || numbers(colour)[3] === 1);
// WCAG 2's relative luminance and contrast.
const luminance = (colour) => {
  const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = numbers(colour).map((c) => linear(c / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (solid(colour)) return colour;
  }
  throw Error("nothing has a background");
};
// The colour that a part of a drawing lies on: of the next filled part below its middle, or of the page.
const under = (part) => {
  part.scrollIntoView({ block: "center" });
  const box = part.getBoundingClientRect();
  const all = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  const below = all.slice(all.indexOf(part) + 1).filter((one) => one.matches("rect, polygon, circle"));
  const filled = below.map((one) => getComputedStyle(one).fill).find(solid);
  return filled || ground(part.ownerSVGElement.parentElement);
};
const isPiece = (element) => element.matches("[role=img] circle, [role=img] text[font-size='40']");
"""

TEXTS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || !element.checkVisibility() || element.matches("script, style") || isPiece(element)) continue;
    const shown = element.matches("option") ? element.closest("select") : element;
    const style = getComputedStyle(shown), svg = shown.ownerSVGElement;
    found.push({
      text, size: parseFloat(style.fontSize) * (svg ? shown.getScreenCTM().a : 1),
      contrast: svg ? contrast(style.fill, under(shown)) : contrast(style.color, ground(shown)),
    });
  }
  return found;
}"""
"""Returns each visible text, its size in CSS pixels, and its contrast to what is behind it."""

PIECES = """() => [...document.querySelectorAll("svg[role=img] *")].filter(isPiece).map((part) => {
  const { fill, stroke } = getComputedStyle(part), below = under(part);
  return Math.max(...[fill, stroke].filter(solid).map((colour) => contrast(colour, below)));
})"""
"""Returns the contrast of each piece, by its body or its edge, to the field that it is on."""

OUTSIDE = """() => [...document.querySelectorAll("svg[role=img] *")].filter((part) => {
  const box = part.getBoundingClientRect(), around = part.ownerSVGElement.getBoundingClientRect();
  return !box.width && !box.height || box.left < around.left - 1 || box.right > around.right + 1
    || box.top < around.top - 1 || box.bottom > around.bottom + 1;
}).map((part) => part.outerHTML)"""
"""Returns the parts of drawings that have no size or are not inside their drawing."""

FOCUS = """() => {
  const element = document.activeElement, style = getComputedStyle(element);
  return {
    id: element.id || element.tagName, outline: style.outlineStyle, width: parseFloat(style.outlineWidth),
    contrast: contrast(style.outlineColor, ground(element.parentElement)),
  };
}"""
"""Returns what has the focus, and the outline that shows it."""

BACKGROUND = "() => luminance(ground(document.body))"
"""Returns the luminance of the page: 0 is black, 1 is white."""


def measure(page: Any, script: str) -> Any:
    return page.evaluate(f"() => {{ {COMMON} return ({script})(); }}")
