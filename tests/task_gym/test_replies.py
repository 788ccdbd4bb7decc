"""Reading replies: upstream's rules case by case, no reply breaks a parser, and time is linear in length."""

import random
import re
import time
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.replies import (
    cut_reasoning,
    first_number,
    last_named,
    read_name,
    strip_reasoning,
    visible,
    whole_reply,
)

LEGAL = [1, 2, 12]
NAMES = ["Call", "Raise", "Big Raise"]

Parser = Callable[[str, Sequence[int], Sequence[str]], int | None]


@pytest.mark.parametrize(
    ("parser", "reply", "action"),
    [
        (first_number, "1", 1),
        (first_number, "I choose 2, not 1", 2),
        (first_number, "-1", 1),
        (first_number, "I pick 777", None),
        (first_number, "3 or 1", None),  # only the first number counts
        (first_number, "Call", None),  # names are not read in reset/step
        (first_number, "", None),
        (first_number, "9" * 6000, None),  # longer than Python converts
        (first_number, "0" * 6000 + "2", None),
        (first_number, "0" * 30 + "2", 2),
        (first_number, "my move: \u0660\u0661", 1),  # Arabic digits, which int() reads
        (whole_reply, "\u0660" * 20 + "\u0662", 2),
        # Names count in whole replies.
        (whole_reply, "  2 \n", 2),
        (whole_reply, "3", None),  # one number, and illegal: a failed try, whatever else
        (whole_reply, "I take 12 over 2", 2),  # legal order, not the reply's
        (whole_reply, "take x12", None),  # "x12" is one word
        (whole_reply, "call", 1),
        (whole_reply, "BIG  RAISE!", 2),  # "raise" comes first in legal order
        (whole_reply, "bigraise", 2),
        (whole_reply, "c-a-l-l", 1),  # only letters and digits
        (whole_reply, "<thinking>1</thinking>2", 2),
        (whole_reply, "it was 1 </think> Raise", 2),
        (whole_reply, "<think>1 or 2? 12", None),  # never closed: the reply was cut before the answer
        (whole_reply, "<THINK>1</Think>2", 2),
        (whole_reply, "", None),
        # The last one that is named counts.
        (last_named, "1 is bad, 12 is good", 12),
        (last_named, "<think>12</think> 2", 2),
        (last_named, "call? no: big raise", 12),  # both names end there, the longer is meant
        (last_named, "raise? no: CALL it is", 1),
        (last_named, "Call, but 2", 2),  # ids before names
        (last_named, "", None),
    ],
)
def test_parsers_by_hand(parser: Parser, reply: str, action: int | None) -> None:
    assert parser(reply, LEGAL, NAMES) == action


def test_a_name_of_symbols_alone_is_read_as_it_is() -> None:
    names = ["Call", "♠", "Raise"]
    assert whole_reply("nothing", LEGAL, names) is None
    assert whole_reply("the ♠", LEGAL, names) == 2
    assert whole_reply("raise ♠", LEGAL, names) == 2  # it comes before in legal order
    assert whole_reply("call", LEGAL, names) == 1
    assert last_named("nothing", LEGAL, names) is None
    assert last_named("the ♠", LEGAL, names) == 2


def test_of_names_that_differ_in_case_alone_the_last_one_counts() -> None:
    # Upstream keeps one id per lower-cased name: the last one, in the place of the first.
    assert whole_reply("bxc3", [4, 7, 9], ["bxc3", "a4", "Bxc3"]) == 9
    assert whole_reply("a4 or Bxc3", [4, 7, 9], ["bxc3", "a4", "Bxc3"]) == 9
    assert whole_reply("a4", [4, 7, 9], ["bxc3", "a4", "Bxc3"]) == 7


def specified_cut(reply: str) -> str:
    """Returns the reply without reasoning, by upstream's regular expressions for traces."""
    for block in (r"<think>.*?</think>", r"<thinking>.*?</thinking>"):
        reply = re.sub(block, "", reply, flags=re.DOTALL)
    return re.split(r"</think>|</thinking>", reply)[-1]


def specified_kept(reply: str) -> str:
    """Returns what ``evaluate`` keeps of a reply to a game, by upstream's regular expressions."""
    for block in (r"<think>.*?</think>", r"<thinking>.*?</thinking>"):
        reply = re.sub(block, "", reply, flags=re.DOTALL | re.IGNORECASE)
    for closing in ("</think>", "</thinking>"):
        reply = reply.split(closing)[-1]
    for opening in ("<think>", "<thinking>"):
        reply = re.split(opening, reply, maxsplit=1, flags=re.IGNORECASE)[0]
    return re.sub(r"\n\s*\n\s*\n", "\n\n", reply).strip()


def specified_last(reply: str, legal: list[int], names: list[str]) -> int | None:
    """Returns what ``last_named`` is to return, by looking at every number and every name."""
    bare = specified_cut(reply).strip()
    numbers = [int(number) for number in re.findall(r"\b\d+\b", bare)]
    for number in reversed(numbers):
        if number in legal:
            return number
    ends = [
        (bare.lower().rfind(name.lower()) + len(name), len(name), -place)
        for place, name in enumerate(names)
        if name and name.lower() in bare.lower()
    ]
    return legal[-max(ends)[2]] if ends else None


# Tags, halves of tags, which become whole when what is between them is cut out, and what a reply may name.
FRAGMENTS = [
    *("<think>", "</think>", "<thinking>", "</thinking>", "<thi", "</thi", "nk>", "nking>"),
    *("<Think>", "</THINK>", "</Thinking>", "\n\n"),
    *("```", "``", "`", "\n", "\r", " ", "a", "b", "B", "_", ",", "0", "1", "12", "99", "c++"),
]


def draw_replies(count: int = 5_000) -> list[str]:
    """Returns texts of up to 16 fragments."""
    draw = random.Random(0)
    return ["".join(draw.choices(FRAGMENTS, k=draw.randrange(17))) for _ in range(count)]


TAGS = [
    "</thi<think>a</think>nk>b",  # a tag that removing a block makes is a tag
    "</thi<thi<think></think>nk>a</think>nk>b",  # but blocks are removed once
    "<thi<think>a</think>nking>b</thinking>c",
    "<think>a<thinking>b</thinking>c",
    "a</think>b</thinking>c",
    "x <thinking> a <think> b </thinking> c </think> d",  # <think> blocks go first
    "<think>a <thinking>b</think> c</thinking> d",
    "<think>a\nb</think> c <thinking>d</thinking> e",
    "a</THINK>b",  # upstream looks for lone closing tags only in small letters
    "well <Thinking>3 or 4",
    "a \n \n\n  b\n\nc",
    "<thin\u212a>a</thin\u212a>b",  # the Kelvin sign is a K in capitals
]


def test_reasoning_is_cut_as_upstream_does() -> None:
    for reply in (*TAGS, *draw_replies()):
        assert cut_reasoning(reply) == specified_cut(reply), reply
        assert strip_reasoning(reply) == specified_cut(reply).strip(), reply
        assert visible(reply) == specified_kept(reply), reply


#: Fragments to repeat. Some of them took quadratic time in an earlier version.
REPEATED = ["<think>", "</think>", "<thinking>", "</thinking>", "9", "9 ", "a", "Big ", "\n"]
PAIRS = [
    pytest.param(pair, marks=pytest.mark.sample if pair[0] == pair[1] else (), id="".join(pair))
    for pair in combinations_with_replacement(REPEATED, 2)
]


@pytest.mark.attack
@pytest.mark.parametrize("parser", [first_number, whole_reply, last_named])
@pytest.mark.parametrize("fragments", PAIRS)
def test_a_reply_is_read_in_linear_time(parser: Parser, fragments: tuple[str, str]) -> None:
    # For a quarter of a megabyte, linear code needs 0.1 s of processor time, and quadratic code 30 s.
    pair = "".join(fragments)
    reply = pair * ((1 << 18) // len(pair)) + "x"
    began = time.process_time()
    parser(reply, LEGAL, NAMES)
    assert time.process_time() - began < 2.5


class CountedId(int):
    """An id that counts how often one is compared with another number."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedId.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


@pytest.mark.parametrize("parser", [first_number, whole_reply, last_named])
def test_numbers_are_not_compared_with_every_legal_id(parser: Parser) -> None:
    legal = [CountedId(action) for action in range(1000)]
    CountedId.compared = 0
    assert parser(" 1000" * 1000, legal, ["name"] * 1000) is None
    # One number may be looked up in the list of 1000 ids; 1000 numbers may not.
    assert CountedId.compared <= 1000


ACTIONS = st.dictionaries(st.integers(0, 300), st.text(max_size=6), min_size=1, max_size=12)
REPLIES = st.text(max_size=60) | st.from_regex(r"(<think>)?[a-c \d]*(</think>)?[\d ,.A-C]*")
REPLIES |= st.lists(st.sampled_from(FRAGMENTS), max_size=16).map("".join)


@given(actions=ACTIONS, reply=REPLIES)
def test_upstreams_rules_to_the_letter(actions: dict[int, str], reply: str) -> None:
    legal = sorted(actions)
    names = [actions[action] for action in legal]

    def first() -> int | None:
        run = re.search(r"\d+", reply)
        return int(run.group()) if run and int(run.group()) in legal else None

    def whole() -> int | None:
        bare = specified_kept(reply)
        if re.fullmatch(r"\d+", bare):
            return int(bare) if int(bare) in legal else None
        for action in legal:
            if re.search(rf"\b{action}\b", bare):
                return action
        ids: dict[str, int] = {}
        for action, name in zip(legal, names, strict=True):
            ids |= {text: action for text in (name.lower(), squeezed(name)) if text or not name}
        for text, action in ids.items():
            if text in bare.lower() or (squeezed(text) and squeezed(text) in squeezed(bare)):
                return action
        return None

    def squeezed(text: str) -> str:
        return re.sub(r"[^a-z0-9]", "", text.lower())

    assert first_number(reply, legal, names) == first()
    assert whole_reply(reply, legal, names) == whole()
    assert last_named(reply, legal, names) == specified_last(reply, legal, names)


CHESS = {"e4": 1, "Nxe4": 2, "bxc3": 3, "Bxc3": 4, "Qh5+": 5, "Qh4": 6}


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("e4", 1),
        ("<think>Nxe4</think> e4\n", 1),
        ("Qxe4", None),  # e4 is a part of another move there
        ("e4 or Nxe4", 2),  # the last one counts
        ("**e4**", 1),
        ("bxc3", 3),
        ("BXC3", None),  # two names, if case is ignored
        ("qh5", 5),
        ("I play QH4!", 6),
        ("1", None),  # an id
        ("", None),
    ],
)
def test_read_name(reply: str, action: int | None) -> None:
    assert read_name(reply, list(CHESS.values()), list(CHESS)) == action
    # The first of equal names counts.
    assert read_name("8/3 6/4", [7, 9], ["8/3 6/4", "8/3 6/4"]) == 7


@given(st.text(), st.lists(st.text(), max_size=4))
def test_read_name_never_breaks(reply: str, names: list[str]) -> None:
    assert read_name(reply, list(range(len(names))), names) in {None, *range(len(names))}
