"""Pages that are generated are current, and what they and other pages say is true."""

from __future__ import annotations

import re
from pathlib import Path

import pyspiel
import pytest

from docs import game_facts, generate, site
from docs.reference import ROOMS
from docs.site import copied, generated, site_pages
from game_gym.games import DECLARED, TABLE
from game_gym.protocols import PROTOCOLS
from game_gym.score import seat_score
from game_gym.task import decode
from gamespiel.config import preset_path
from gamespiel.config.schema import DOTTED
from tests.docs.test_blocks import run_block
from tests.gamespiel.runs import mark_samples
from tests.gamespiel.test_first_steps import CARD
from trace_gym.admission.admit import MOST_LINES, MOST_OUTPUT
from trace_gym.inject import MOST, STYLES
from trace_gym.mutants.versions import LEAST, OPTIONS
from trace_gym.programs.builtin import NAMES, split
from trace_gym.programs.hub import DATASET
from trace_gym.score import SCORINGS

ROOT = Path(__file__).parents[2]
GAMES, TRACE, MODELS = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("games", "trace", "models")
)
PLAIN = re.sub(r"^```.*?^```$", lambda code: re.sub(r"[^\n]", " ", code[0]), GAMES, flags=re.M | re.S)
"""The page with blanks in place of code, in which solitaire's columns begin with #."""


DEAR = ("docs/games.md", "docs/assets/play/model.js", "docs/assets/decision.svg")
"""Generated files that take more seconds than all others: `make docs` and `make test-rest` look at them."""

SLOW = ("docs/assets/play/games.js", "docs/trace.md")
"""Others that take about a second."""


def section(heading: str) -> str:
    """Returns the text between a heading of docs/games.md and the next one of its level or above."""
    start = PLAIN.index(f"\n{heading}\n") + len(heading) + 2
    following = re.compile(rf"^#{{1,{heading.count('#')}}} ", re.MULTILINE).search(PLAIN, start)
    return GAMES[start : following.start() if following else None]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            marks=[
                *[pytest.mark.trains] * (path in (*DEAR, *SLOW)),
                *[pytest.mark.sample] * (path in SLOW),
            ],
        )
        for path in generate.FILES
    ],
)
def test_generated_files_are_current(path: str) -> None:
    assert generate.find_stale([path]) == {}, "write it anew with: python -m docs.generate"


def test_every_declared_game_has_a_section_with_its_rules_and_an_observation() -> None:
    others = [name for name in DECLARED if name not in TABLE]
    assert re.findall(r"^### (.*)$", PLAIN, re.M) == [*TABLE, *others]
    for name, spec in DECLARED.items():
        text = section(f"### {name}")
        rules, example = re.findall(r"```text\n(.*?)\n```", text, re.S)
        assert rules.split() == game_facts.variants(spec)[0].rules.split()
        assert example.startswith(f"Game: {name}\nYou are Player ")
        # One row per variant under two lines of heading.
        assert len(re.findall(r"^\|", text, re.M)) == 2 + spec.variants


def test_the_examples_print_what_is_shown() -> None:
    examples = re.findall(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", GAMES, re.S)
    assert len(examples) == GAMES.count("```python") == 4
    for code, shown in examples:
        assert run_block(code, "docs/games.md", {}) == shown


def test_the_table_of_seeds_is_the_protocols() -> None:
    lines = [line.split("|") for line in section("## Seeds").split("\n") if line.startswith("|")]
    row = {cells[1].strip(): cells[2:4] for cells in lines}
    for column, name in enumerate(("openenv", "evaluate")):
        protocol = PROTOCOLS[name]
        for s, n in ((7, 2), (7, 4), (10, 4), (3, 1)):
            told = row["your seat"][column].replace("mod", "%")
            assert protocol.seat(s, n) == eval(told, {"s": s, "n": n})
            random_state = re.fullmatch(r"`RandomState\((.*)\)`", row["stream of chance"][column].strip())
            assert random_state and protocol.chance(s) == eval(random_state[1], {"s": s})
        assert row[""][column].strip() == f'`seeding="{name}"`'


def test_the_scores_worked_out() -> None:
    assert "(5 + 13) / 26 = 0.692" in GAMES
    assert seat_score([5, -5], 0, True, -13, 13) == pytest.approx(0.692, abs=5e-4)
    assert "(420 + 7600) / 15200 = 0.528" in GAMES
    assert seat_score([420, -420] * 2, 0, True, -7600, 7600) == pytest.approx(0.528, abs=5e-4)
    assert "success in 2048 is a return above 10,240" in GAMES
    assert seat_score([10_240], 0, False, 0, decode(1_700_000_000).variant.high) == 0.5


def test_the_other_games_are_told_once_and_rightly() -> None:
    groups = re.findall(r"^- \*\*(.*?)\*\* \((\d+)\): (.*)$", section("## Other games of OpenSpiel"), re.M)
    listed: dict[str, str] = {}
    for heading, count, names in groups:
        game_names = re.findall(r"`(\w+)`", names)
        assert len(game_names) == int(count)
        listed.update(dict.fromkeys(game_names, heading))
    assert sum(int(count) for _, count, _ in groups) == len(listed)
    registered = {
        name for name in pyspiel.registered_names() if not name.startswith(("python_", "chat_game"))
    }
    assert set(listed) == registered - set(DECLARED)
    assert listed["breakthrough"] == "Two seats, perfect information"
    assert listed["matching_pennies_3p"] == "Simultaneous moves"
    assert "mean-field" in listed["mfg_garnet"] and "own chance" in listed["tarok"]


def test_numbers_and_names_of_traces_in_words() -> None:
    # "seven", "three", "six"
    assert (OPTIONS, LEAST, MOST) == (8, 4, 6)
    assert f"at most {MOST_OUTPUT} bytes" in TRACE and f"at most {MOST_LINES:,} lines" in TRACE
    assert DATASET in TRACE
    assert all(f"**{name}**" in TRACE for name in SCORINGS)
    assert all(f'injector="{style}"' in TRACE for style in STYLES)
    (family, level) = re.findall(r"family = (id mod \d+) +level = (.*)", TRACE)[0]
    for task_id in (0, 37, 159, 10**11 - 1):
        index, number = (eval(rule.replace("mod", "%"), {"id": task_id}) for rule in (family, level))
        assert split(task_id) == (NAMES[index], number)


def test_keys_and_presets_of_models_are_there() -> None:
    keys = re.findall(r"`((?:model|ppo|run|env|lora)\.(?!safetensors)\w+)", MODELS)
    assert keys and [key for key in keys if key not in DOTTED] == []
    for name in CARD:
        assert preset_path(name).is_file() and f"`{name}`" in MODELS


# -- pages of the documentation site: generated, with links that lead somewhere ----------------------------


QUICK = ["games/leduc_poker.md", "games/hex.md", "traces/closures.md"]
PLAYED = [name for name in generated() if not name.startswith("reference/")]


def test_there_is_a_page_per_game_family_and_room() -> None:
    expected = {f"games/{name}.md" for name in DECLARED} | {f"traces/{name}.md" for name in NAMES}
    assert set(generated()) == expected | {f"reference/{room}.md" for room in ROOMS}
    assert set(site_pages().values()) & set(generated()) == set()


@pytest.mark.parametrize("name", mark_samples(PLAYED, QUICK))
def test_the_examples_of_the_site_print_what_is_shown(name: str) -> None:
    example = re.compile(r"```python\n(.*?)```\n\nprints\n\n(`{3,})text\n(.*?)\n\2", re.S)
    ((code, _, shown),) = example.findall(generated()[name]())
    assert run_block(code, name, {}).rstrip("\n") == shown


def test_pages_are_copied_with_links_of_the_site() -> None:
    home = copied("README.md")
    assert "[docs/games.md](games.md)" in home and "[CONTRIBUTING.md](contributing.md)" in home
    assert "](assets/learning_speed.png)" in home
    games = copied("docs/games.md")
    assert "[The games one by one](games.md#find-a-game)" in games
    assert "[hex](games/hex.md)" in games and "### hex" not in games and "## Other games" in games
    assert "traces/closures.md" in copied("docs/trace.md")
    for path in site_pages():
        copied(path)  # which raises if a link leads nowhere


def test_links_are_the_sites_and_code_is_copied_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A link to a file that the site lacks is its label."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "own.py").touch()
    monkeypatch.setattr(site, "ROOT", tmp_path)
    code = "````text\n```\n[a](nowhere.md)\n```\n````\n"
    page = tmp_path / "README.md"
    page.write_text(f"[a](#b)\n[`own.py`](own.py) [x](https://a.b/c)\n{code}")
    assert copied("README.md") == f"[a](#b)\n`own.py` [x](https://a.b/c)\n{code}"
    page.write_text("[x](gone.md)")
    with pytest.raises(ValueError, match=r"README\.md: a link to 'gone\.md'"):
        copied("README.md")
