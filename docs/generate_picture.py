"""README's picture of a decision, as the model sees it and as it decides: `python -m docs.generate`."""

from __future__ import annotations

from html import escape

from docs.generate_play import tree_of
from docs.play_trained import list_probabilities, read_script

GAME = "leduc_poker"

STATE = """\
Your card: Q♠
Public card: K♠
Round 1: you call, Player 1 call
Round 2: you call, Player 1 raise
Pot: 6"""
"""A state in which the trained model of docs/play.md mixes its moves."""

WIDTH, LINE, LEFT, BARS = 880, 21, 24, 560
"""In pixels: of the picture and a line; where the prompt and the bars begin."""

LONGEST = 220
"""Pixels of a bar of probability 1."""

STYLE = """\
text { font: 14px ui-monospace, Menlo, Consolas, monospace; fill: #1b1f24; white-space: pre }
.title { font-weight: bold } .faint { fill: #59636e } .frame { fill: #f6f8fa; stroke: #d1d9e0 }
.untrained { fill: #8c959f } .trained { fill: #bc4c00 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .faint { fill: #9198a1 } .frame { fill: #151b23; stroke: #3d444d }
  .untrained { fill: #6e7681 } .trained { fill: #f0883e }
}"""


def picture() -> str:
    """Returns the text of docs/assets/decision.svg."""
    states = tree_of(GAME).states
    at = next(at for at, state in enumerate(states) if f"\n{STATE}\n" in state.text)
    prompt, tables = states[at].text.splitlines(), list_probabilities(GAME, read_script()[GAME])
    height = (len(prompt) + 3) * LINE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">',
        "<title>A prompt of Leduc poker, and both models' probabilities for each legal action</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="frame" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
        write(LEFT, LINE * 1.5, "What the model reads", "title"),
        write(BARS, LINE * 1.5, "What it does", "title"),
    ]
    parts += [write(LEFT, LINE * (row + 3), line) for row, line in enumerate(prompt) if line]
    row = 3.0
    for place, action in enumerate(states[at].legal):
        name = next(line.strip() for line in prompt if line.startswith(f"  {action} -> "))
        parts.append(write(BARS, LINE * row, name))
        for line, model in enumerate(("untrained", "trained"), start=1):
            probability = round(tables[model][at][place], 2)
            y, length = LINE * (row + line * 0.9), LONGEST * probability
            bar = f'x="{BARS}" y="{y - 12:g}" width="{length:.0f}" height="13"'
            parts.append(f'<rect class="{model}" {bar}/>')
            parts.append(write(BARS + length + 8, y, f"{probability:.0%} {model}", "faint"))
        row += 3.6
    return "\n".join([*parts, "</svg>\n"])


def write(x: float, y: float, text: str, kind: str = "") -> str:
    """Returns a line of text whose baseline begins at a point."""
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:g}"{style}>{escape(text, quote=False)}</text>'
