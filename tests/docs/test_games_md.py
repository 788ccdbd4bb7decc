"""docs/games.md is current, and its statements are true."""

from __future__ import annotations

import contextlib
import io
import re

import pyspiel
import pytest

from docs import game_facts, generate_games
from docs.generate_games import PAGE, shorten, table
from game_gym.games import DECLARED, TABLE
from game_gym.protocols import PROTOCOLS
from game_gym.score import seat_score
from game_gym.task import decode

TEXT = PAGE.read_text(encoding="utf-8")


def headings() -> list[tuple[int, str]]:
    """Returns line number and text of every heading outside code blocks: solitaire's columns begin with #."""
    found, inside = [], False
    for number, line in enumerate(TEXT.split("\n")):
        inside ^= line.startswith("```")
        if line.startswith("#") and not inside:
            found.append((number, line))
    return found


def section(heading: str) -> str:
    """Returns the text between a heading and the next one of its level or above."""
    start = next(number for number, line in headings() if line == heading)
    level = heading.count("#")
    after = [number for number, line in headings() if number > start and line.count("#") <= level]
    return "\n".join(TEXT.split("\n")[start + 1 : min(after, default=None)])


@pytest.mark.sample
@pytest.mark.trains
def test_the_page_is_current() -> None:
    assert generate_games.page() == TEXT, "write it anew with: python -m docs.generate_games"


def test_every_declared_game_has_a_section_with_its_rules_and_an_observation() -> None:
    others = [name for name in DECLARED if name not in TABLE]
    assert [line[4:] for _, line in headings() if line.startswith("### ")] == [*TABLE, *others]
    for name, spec in DECLARED.items():
        text = section(f"### {name}")
        rules, example = re.findall(r"```text\n(.*?)\n```", text, re.S)
        assert rules.split() == game_facts.variants(spec)[0].rules.split()
        assert example.startswith(f"Game: {name}\nYou are Player ")
        # One row per variant under two lines of heading.
        assert len(re.findall(r"^\|", text, re.M)) == 2 + spec.variants


def test_the_examples_print_what_is_shown() -> None:
    examples = re.findall(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", TEXT, re.S)
    assert len(examples) == TEXT.count("```python") == 4
    for code, shown in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/games.md", "exec"), {})
        assert printed.getvalue() == shown


def test_links_lead_somewhere() -> None:
    words = [line.lstrip("# ").lower() for _, line in headings()]
    anchors = {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in words}
    links = re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", TEXT, flags=re.S))
    assert len(links) > 3 * len(DECLARED)
    for link in links:
        inside = link.startswith("#")
        assert link[1:] in anchors if inside else (PAGE.parent / link).is_file(), link


def test_long_lists_are_cut_short_and_cells_are_escaped() -> None:
    def observation(count: int) -> str:
        return "S\n\nLegal Actions:\n" + "\n".join(f"  {n} -> m{n}" for n in range(count)) + "\n\nYour choice"

    assert shorten(observation(10)) == observation(10)
    # Eight, a line for the omitted actions, and the last one: three of 12 are omitted.
    assert shorten(observation(12)).split("\n")[3:13] == [
        *(f"  {n} -> m{n}" for n in range(8)),
        "  … 3 more",
        "  11 -> m11",
    ]
    assert table(["a"], [["x|y"]]) == "| a |\n| --- |\n| x\\|y |"


def test_ids_of_the_table_are_where_it_says() -> None:
    rows = re.findall(r"^\| (\d+) \| ([\d_]+) \| \[(\w+)\]", section("## Find a game"), re.M)
    assert len(rows) == len(TABLE) == 22
    for index, first, name in rows:
        assert int(first) == int(index) * 100_000_000
        assert decode(int(first)).variant.spec.name == name
        # 22 * 100_000_000 ids later it is the same game.
        assert decode(int(first) + 2_200_000_000).variant is decode(int(first)).variant


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
    assert [PROTOCOLS["openenv"].bot(7, p, 2) for p in (0, 1)] == [7, 7]
    assert [PROTOCOLS["openenv"].bot(7, p, 4) for p in range(4)] == [7, 8, 9, 10]
    assert [PROTOCOLS["evaluate"].bot(7, p, 4) for p in range(4)] == [9, 10, 11, 12]


def test_the_scores_worked_out() -> None:
    assert "(5 + 13) / 26 = 0.692" in TEXT
    assert seat_score([5, -5], 0, True, -13, 13) == pytest.approx(0.692, abs=5e-4)
    assert "(420 + 7600) / 15200 = 0.528" in TEXT
    assert seat_score([420, -420] * 2, 0, True, -7600, 7600) == pytest.approx(0.528, abs=5e-4)
    assert "success in 2048 is a return above 10,240" in TEXT
    assert seat_score([10_240], 0, False, 0, decode(1_700_000_000).variant.high) == 0.5


def test_statistics_are_worked_out() -> None:
    """Tic-tac-toe: the agent's seat alternates; a full board has five moves of seat 0 and four of seat 1."""
    some = game_facts.sample("tic_tac_toe", 0)
    assert len(some.decisions) == 12 and len(some.prompts) == sum(some.decisions)
    assert all(3 <= count <= 5 - seed % 2 for seed, count in enumerate(some.decisions))
    bare, told = game_facts.opening("tic_tac_toe", 0)
    assert told.endswith(bare) and DECLARED["tic_tac_toe"].rules({}) in told


def test_the_other_games_are_told_once_and_rightly() -> None:
    groups = re.findall(r"^- \*\*(.*?)\*\* \((\d+)\): (.*)$", section("## Other games of OpenSpiel"), re.M)
    listed: dict[str, str] = {}
    for heading, count, names in groups:
        found = re.findall(r"`(\w+)`", names)
        assert len(found) == int(count)
        listed.update(dict.fromkeys(found, heading))
    assert sum(int(count) for _, count, _ in groups) == len(listed)
    registered = {
        name for name in pyspiel.registered_names() if not name.startswith(("python_", "chat_game"))
    }
    assert set(listed) == registered - set(DECLARED)
    assert listed["breakthrough"] == "Two seats, perfect information"
    assert listed["matching_pennies_3p"] == "Simultaneous moves"
    assert "mean-field" in listed["mfg_garnet"] and "own chance" in listed["tarok"]
